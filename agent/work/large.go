package work

import (
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// largeWork is from how many bytes of manifests a work counts as large, and largeManifest from how many of one
	// manifest: then its pass may take long, because its objects wait for those of other works.
	largeWork, largeManifest = 64 << 10, 15 << 10
	// largeRules is the same for the expressions of condition rules, of which each manifest may have all.
	largeRules = 256 << 10
)

// lengthOf is how long a pass over a work may take. A deletion goes first: the work may have what the others wait for.
func lengthOf(work *workv1.ManifestWork) reconcile.Length {
	switch {
	case !isLarge(work):
		return reconcile.Short
	case !work.DeletionTimestamp.IsZero():
		return reconcile.LongFirst
	}
	return reconcile.Long
}

// isLarge reports whether a pass over a work may take long.
func isLarge(work *workv1.ManifestWork) bool {
	sum, rules := 0, 0
	for i := range work.Spec.ManifestConfigs {
		for _, rule := range work.Spec.ManifestConfigs[i].ConditionRules {
			rules += len(rule.MessageExpression)
			for _, expression := range rule.CelExpressions {
				rules += len(expression)
			}
		}
	}
	if rules*len(work.Spec.Workload.Manifests) > largeRules {
		return true
	}
	for i := range work.Spec.Workload.Manifests {
		bytes := len(work.Spec.Workload.Manifests[i].Raw)
		if sum += bytes; bytes > largeManifest || sum > largeWork {
			return true
		}
	}
	return false
}
