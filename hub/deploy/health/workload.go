package health

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// Object is an object of a ManifestWork, as far as its health depends on it.
type Object struct {
	// Group and Kind are those of the object.
	Group, Kind string
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
	// Replicas is spec.replicas in the manifest; -1 when it is not stated.
	Replicas int64
}

// String returns kind, namespace and name.
func (o Object) String() string { return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name) }

func (o Object) id(w workload) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: o.Group, Resource: w.resource, Namespace: o.Namespace, Name: o.Name}
}

// workload is how the health of a kind is judged: by the number of ready pods and that of desired ones.
type workload struct {
	resource string
	// ready and desired are the names of the two values.
	ready, desired string
	// all means that every desired pod must be ready; otherwise one is enough.
	all bool
	// paths are where the values are in the object; empty when they are well-known to every agent.
	paths []workv1.JsonPath
	// rollout are further values, which show whether the pods are of the present version. Works of earlier hub managers
	// do not ask for them.
	rollout []workv1.JsonPath
}

// The names of further values: how many pods the spec on the cluster asks for, which may be what an autoscaler wrote,
// how many are of the present version, and which generation of the spec the numbers are about.
const (
	specReplicas, updatedReplicas  = "SpecReplicas", "UpdatedReplicas"
	generation, observedGeneration = "Generation", "ObservedGeneration"
)

// generations are the paths of the generations.
func generations() []workv1.JsonPath {
	return []workv1.JsonPath{
		{Name: generation, Path: ".metadata.generation"}, {Name: observedGeneration, Path: ".status.observedGeneration"},
	}
}

// needs returns the feedback rules for the two values.
func (w workload) needs() []workv1.FeedbackRule {
	if len(w.paths) == 0 {
		return []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	}
	return []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: slices.Clone(w.paths)}}
}

// rules returns the feedback rules for all values.
func (w workload) rules() []workv1.FeedbackRule {
	if len(w.rollout) == 0 {
		return w.needs()
	}
	return mergeRule(w.needs(), workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: slices.Clone(w.rollout)})
}

// workloadOf returns how a probe judges an object; false when it does not, or when its author switched the object off.
func workloadOf(probe addon.HealthProbe, o Object) (workload, bool) {
	if o.Group != "apps" || o.Replicas == 0 {
		return workload{}, false
	}
	all := probe == addon.HealthWorkloads
	switch o.Kind {
	case "Deployment":
		further := append([]workv1.JsonPath{
			{Name: specReplicas, Path: ".spec.replicas"}, {Name: updatedReplicas, Path: ".status.updatedReplicas"},
		}, generations()...)
		return workload{
			resource: "deployments", ready: "ReadyReplicas", desired: "Replicas", rollout: further,
		}, all || probe == addon.HealthDeployments
	case "DaemonSet":
		return workload{
			resource: "daemonsets", ready: "NumberReady", desired: "DesiredNumberScheduled", all: true,
		}, all
	case "StatefulSet":
		// No status of it is well-known to agents of OCM. With its strategy OnDelete, or a partition, pods of an earlier
		// version stay.
		return workload{resource: "statefulsets", ready: "ReadyReplicas", desired: "Replicas", paths: []workv1.JsonPath{
			{Name: "ReadyReplicas", Path: ".status.readyReplicas"}, {Name: "Replicas", Path: ".status.replicas"},
		}, rollout: append([]workv1.JsonPath{{Name: specReplicas, Path: ".spec.replicas"}}, generations()...)}, all
	}
	return workload{}, false
}

// verdict is the health of a workload.
type verdict int

const (
	fine verdict = iota
	unknown
	broken
)

// judge returns the health of a workload from the values that are fed back, and why it is broken.
func (w workload) judge(values map[string]int64) (verdict, string) {
	ready, readyKnown := values[w.ready]
	desired, desiredKnown := values[w.desired]
	if stated, answered := values[specReplicas]; answered && !desiredKnown {
		desired, desiredKnown = stated, true // Kubernetes omits the number of pods where it is 0.
	}
	switch {
	case len(values) == 0:
		return unknown, ""
	case desiredKnown && desired == 0,
		w.all && readyKnown && desiredKnown && ready == desired,
		!w.all && readyKnown && ready >= 1:
		return fine, ""
	}
	if !desiredKnown {
		return broken, fmt.Sprintf("has %d ready of unknown pods", ready)
	}
	// Kubernetes omits the number of ready pods where it is 0.
	return broken, fmt.Sprintf("has %d ready of %d pods", ready, desired)
}

// conditionFeedback and reasonFeedback say that an agent found what its rules of feedback name, or that it is not
// there.
const conditionFeedback, reasonFeedback = "StatusFeedbackSynced", "StatusFeedbackSynced"

// integers returns the integers that are fed back about an object, by name, and whether the agent says that these are
// all.
func integers(id workv1.ResourceIdentifier, work *workv1.ManifestWork) (map[string]int64, bool) {
	for i := range work.Status.ResourceStatus.Manifests {
		m := &work.Status.ResourceStatus.Manifests[i]
		if idOf(m.ResourceMeta) != id {
			continue
		}
		result := addon.ProbeResult{Values: m.StatusFeedbacks.Values}
		values := make(map[string]int64, len(result.Values))
		for _, value := range result.Values {
			if number, known := result.Integer(value.Name); known {
				values[value.Name] = number
			}
		}
		synced := meta.FindStatusCondition(m.Conditions, conditionFeedback)
		return values, synced != nil && synced.Status == metav1.ConditionTrue && synced.Reason == reasonFeedback
	}
	return nil, false
}

// idOf identifies an object that a cluster reports on.
func idOf(m workv1.ManifestResourceMeta) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: m.Group, Resource: m.Resource, Namespace: m.Namespace, Name: m.Name}
}
