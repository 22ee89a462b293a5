package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// steadyHealth returns the health probe to use in this pass, and the probe that the template asks for if it differs.
// The annotation that selects the probe is not part of a rollout, so an edit of it, or an upgrade of the hub, would
// change the health of a whole fleet at once. It takes effect with the next rollout of the template. The probe of an
// add-on without a template is in the program of its author, and counts at once.
func steadyHealth(f facts) (use, pending addon.HealthProbe) {
	isWanted := f.setup.Health
	own := ownWorks(f)
	if f.setupErr != nil || len(own) == 0 || !byTemplate(f, own) || (f.renderErr == nil && rollsOut(f, own)) {
		return isWanted, ""
	}
	mode := f.addOn.Status.HealthCheck.Mode
	switch {
	case isWanted == addon.HealthLease && mode == addonv1beta1.HealthCheckModeCustomized:
		return addon.HealthWorkloads, isWanted
	case isWanted == addon.HealthWorkloads && mode == addonv1beta1.HealthCheckModeLease && unprobed(own):
		return addon.HealthLease, isWanted
	}
	return isWanted, ""
}

// byTemplate reports whether the add-on is made of a template, or was until now.
func byTemplate(f facts, own []*workv1.ManifestWork) bool {
	return len(templateHashes(works.ConfigHashes(f.rendering.Configs))) > 0 ||
		slices.ContainsFunc(own, func(work *workv1.ManifestWork) bool {
			return len(templateHashes(work.Annotations[names.AnnotationConfigSpecHash])) > 0
		})
}

// rollsOut reports whether this pass brings different content of a template to the cluster.
func rollsOut(f facts, own []*workv1.ManifestWork) bool {
	want := templateHashes(works.ConfigHashes(f.rendering.Configs))
	return slices.ContainsFunc(own, func(work *workv1.ManifestWork) bool {
		return !maps.Equal(want, templateHashes(work.Annotations[names.AnnotationConfigSpecHash]))
	})
}

// templateHashes returns the hashes of templates from the annotation of a work.
func templateHashes(annotation string) map[string]string {
	var hashes map[string]string
	if json.Unmarshal([]byte(annotation), &hashes) != nil {
		return nil
	}
	of := schema.GroupResource(confighash.Template()).String() + "/"
	maps.DeleteFunc(hashes, func(key, _ string) bool { return !strings.HasPrefix(key, of) })
	return hashes
}

// unprobed reports whether works were rolled out without feedback rules for their workloads. The mode in the status
// alone does not show it, because Lease is also the API default.
func unprobed(own []*workv1.ManifestWork) bool {
	found := false
	for _, work := range own {
		if works.IsSummed(work) {
			return false // There are so many that it is one of ours.
		}
		for i := range work.Spec.Workload.Manifests {
			s, err := works.Read(&work.Spec.Workload.Manifests[i])
			if err != nil {
				continue
			}
			o := healthObject(s)
			if !health.Judges(addon.HealthWorkloads, o) {
				continue
			}
			if health.Asks(addon.HealthWorkloads, o, work) {
				return false
			}
			found = true
		}
	}
	return found
}
