package deploy

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// hookWorkName names the ManifestWork of the pre-delete hook of an add-on (docs/reference/hub.md, "Works of an
// add-on").
func hookWorkName(addOn string) string { return "addon-" + addOn + "-pre-delete" }

// hookManifests returns the pre-delete hooks among the objects of an add-on.
func hookManifests(objects []*unstructured.Unstructured) ([]manifest, error) {
	var hooks []manifest
	for i, object := range objects {
		if !isHook(object) {
			continue
		}
		id := identity{object.GroupVersionKind().Group, object.GetKind(), object.GetNamespace(), object.GetName()}
		raw, err := json.Marshal(withoutNulls(object.Object))
		if err != nil {
			return nil, fmt.Errorf("encoding the pre-delete hook %s: %w", id, err)
		}
		hooks = append(hooks, manifest{identity: id, raw: raw, order: i})
	}
	return hooks, nil
}

// newHookWork returns the work that runs the pre-delete hook, with feedback rules for its completion.
func newHookWork(f deletionFacts, hooks []manifest) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.addOn.Namespace, Name: hookWorkName(f.addOn.Name),
			Labels:          map[string]string{names.LabelAddonName: f.addOn.Name},
			OwnerReferences: []metav1.OwnerReference{ownerReference(f.addOn, true)},
		},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: workload(hooks)}},
	}
	for _, hook := range hooks {
		work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: hook.group, Resource: hookResource(hook.identity), Namespace: hook.namespace, Name: hook.name,
			},
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		})
	}
	return work
}

func hookResource(id identity) string {
	if id.kind == "Pod" {
		return "pods"
	}
	return "jobs"
}

// hookCompleted reports whether every hook in a work has completed (docs/reference/hub.md, "Pre-delete hooks"): the
// work is available, and the agent of the cluster reports each Job complete and each Pod succeeded.
func hookCompleted(work *workv1.ManifestWork) bool {
	if !meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable) {
		return false
	}
	hooks := 0
	for i := range work.Spec.Workload.Manifests {
		s, err := readManifest(&work.Spec.Workload.Manifests[i])
		if err != nil {
			return false
		}
		if s.kind != "Job" && s.kind != "Pod" {
			continue
		}
		hooks++
		if !hookDone(s.identity, work) {
			return false
		}
	}
	return hooks > 0
}

// hookDone reports whether the agent of the cluster reports one hook as completed.
func hookDone(id identity, work *workv1.ManifestWork) bool {
	for _, m := range work.Status.ResourceStatus.Manifests {
		about := m.ResourceMeta
		if about.Group != id.group || about.Kind != id.kind || about.Namespace != id.namespace || about.Name != id.name {
			continue
		}
		for _, value := range m.StatusFeedbacks.Values {
			if value.Value.String == nil {
				continue
			}
			switch {
			case value.Name == "JobComplete" && *value.Value.String == "True",
				value.Name == "PodPhase" && *value.Value.String == "Succeeded":
				return true
			}
		}
	}
	return false
}
