package works

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// valueFailed and valueMessage are the names of the feedback values with which the work of a hook shows that a Job
	// failed. They are rules of the work itself, so that every agent reports them. valueFailedKnown is the name that an
	// agent may use by itself.
	valueFailed, valueMessage = "HookFailed", "HookMessage"
	valueFailedKnown          = "JobFailed"

	isTrue = "True"
)

// HookWork returns the work that runs pre-delete hooks, with feedback rules for their end.
func HookWork(set Set, hooks []Manifest) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name(0), Labels: set.labels(), OwnerReferences: set.owners(),
			Annotations: set.annotations(),
		},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: workload(hooks)}},
	}
	for _, hook := range hooks {
		option := workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: hook.Group, Resource: "pods", Namespace: hook.Namespace, Name: hook.Name,
			},
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		}
		if hook.Kind == "Job" {
			option.ResourceIdentifier.Resource = "jobs"
			option.FeedbackRules = append(option.FeedbackRules, workv1.FeedbackRule{
				Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
					{Name: valueFailed, Path: `.status.conditions[?(@.type=="Failed")].status`},
					{Name: valueMessage, Path: `.status.conditions[?(@.type=="Failed")].message`},
				},
			})
		}
		work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, option)
	}
	return work
}

// HookState says what the agent of a cluster reports about the work of a hook.
type HookState struct {
	// Complete means that the work is available, each Job complete and each Pod succeeded.
	Complete bool
	// Failure names the first hook that failed, and the cause where it is known; empty when none did.
	Failure string
	// Terms are the terms of the hooks in the work.
	Terms []Terms
}

// ReadHook reads the state of the work of a hook (docs/reference/hub.md, "Pre-delete hooks"). Only its Jobs and Pods
// count.
func ReadHook(work *workv1.ManifestWork) HookState {
	state := HookState{Complete: meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable)}
	hooks := 0
	for i := range work.Spec.Workload.Manifests {
		s, err := Read(&work.Spec.Workload.Manifests[i])
		if err != nil {
			state.Complete = false
			continue
		}
		if s.Kind != "Job" && s.Kind != "Pod" {
			continue
		}
		hooks++
		if s.Terms != nil {
			state.Terms = append(state.Terms, *s.Terms)
		}
		values := hookValues(s.Identity, work)
		state.Complete = state.Complete && (values["JobComplete"] == isTrue || values["PodPhase"] == "Succeeded")
		failed := values[valueFailed] == isTrue || values[valueFailedKnown] == isTrue || values["PodPhase"] == "Failed"
		if failed && state.Failure == "" {
			state.Failure = fmt.Sprintf("%s failed: %s", s.Identity, cmp.Or(values[valueMessage], "see its pods on the cluster"))
		}
	}
	state.Complete = state.Complete && hooks > 0
	return state
}

// hookValues returns the strings that are fed back about an object, by name.
func hookValues(id Identity, work *workv1.ManifestWork) map[string]string {
	values := map[string]string{}
	for _, m := range work.Status.ResourceStatus.Manifests {
		about := m.ResourceMeta
		if about.Group != id.Group || about.Kind != id.Kind || about.Namespace != id.Namespace || about.Name != id.Name {
			continue
		}
		for _, value := range m.StatusFeedbacks.Values {
			if value.Value.String != nil {
				values[value.Name] = *value.Value.String
			}
		}
	}
	return values
}
