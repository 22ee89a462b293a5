package work

import (
	"slices"
	"sync"

	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// largeWork is from how many bytes of manifests a work counts as large, and largeManifest from how many of one
	// manifest: then its pass may take long, because its objects wait for those of other works.
	largeWork, largeManifest = 64 << 10, 15 << 10
	// largeRules is the same for the expressions of condition rules, of which each manifest may have all.
	largeRules = 256 << 10
)

// turns leave workers to small works: only half of the workers have passes over large works at the same time. These
// have their turns in the order in which they came, and one that waits has no pass until then. The zero value lets all
// pass.
type turns struct {
	mutex sync.Mutex
	// most is how many large works may have a pass at the same time; zero for any number.
	most int
	// taken is how many have one, or a turn that is kept for them.
	taken   int
	kept    map[string]bool
	waiting []string
}

// enter reports whether a work may have its pass, which must end with leave. One that may not is returned by leave when
// its turn comes.
func (t *turns) enter(work string, large bool) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.most == 0 || !large {
		t.forget(work)
		return true
	}
	switch {
	case t.kept[work]:
		delete(t.kept, work)
		return true
	case slices.Contains(t.waiting, work):
		return false
	case t.taken < t.most && len(t.waiting) == 0:
		t.taken++
		return true
	}
	t.waiting = append(t.waiting, work)
	return false
}

// leave ends a pass of a work that is large, or is not, and returns the works whose turn it is.
func (t *turns) leave(work string, large bool) (next []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.forget(work); large && t.most > 0 {
		t.taken--
	}
	for len(t.waiting) > 0 && t.taken < t.most {
		first := t.waiting[0]
		t.waiting = t.waiting[1:]
		if t.kept == nil {
			t.kept = map[string]bool{}
		}
		t.kept[first] = true
		t.taken++
		next = append(next, first)
	}
	return next
}

// forget takes a work out of those that wait, and takes back the turn that is kept for it.
func (t *turns) forget(work string) {
	if t.kept[work] {
		delete(t.kept, work)
		t.taken--
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other string) bool { return other == work })
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
