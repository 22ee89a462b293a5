package spokes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// live gives an object the status that it would have on a cluster, some time after it was applied. Kinds without pods
// keep the status of their manifest.
func live(object *unstructured.Unstructured, healthy bool) {
	var state map[string]any
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		state = replicated(replicas(object), healthy)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		state = onNodes(healthy)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		state = job(healthy)
	case schema.GroupKind{Kind: "Pod"}:
		policy, _, _ := unstructured.NestedString(object.Object, "spec", "restartPolicy")
		state = pod(policy, healthy)
	default:
		return
	}
	state["observedGeneration"] = int64(1)
	object.Object["status"] = state
}

// replicas returns the replicas of a spec; without any it is one.
func replicas(object *unstructured.Unstructured) int64 {
	n, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !found || err != nil {
		return 1
	}
	return n
}

// replicated is the status of a Deployment or a StatefulSet.
func replicated(n int64, healthy bool) map[string]any {
	ready, available := n, "True"
	if !healthy && n > 0 {
		ready, available = 0, "False"
	}
	return map[string]any{
		"replicas": n, "updatedReplicas": n, "readyReplicas": ready, "availableReplicas": ready,
		"conditions": []any{map[string]any{"type": "Available", "status": available}},
	}
}

// onNodes is the status of a DaemonSet on a cluster of three nodes.
func onNodes(healthy bool) map[string]any {
	const nodes = int64(3)
	ready := nodes
	if !healthy {
		ready = 0
	}
	return map[string]any{
		"desiredNumberScheduled": nodes, "currentNumberScheduled": nodes, "updatedNumberScheduled": nodes,
		"numberReady": ready, "numberAvailable": ready,
	}
}

// job is the status of a Job.
func job(healthy bool) map[string]any {
	if !healthy {
		return map[string]any{"active": int64(1)}
	}
	return map[string]any{
		"succeeded":  int64(1),
		"conditions": []any{map[string]any{"type": "Complete", "status": "True"}},
	}
}

// pod is the status of a Pod: one that restarts runs, any other has ended.
func pod(restartPolicy string, healthy bool) map[string]any {
	phase, ready := "Running", "True"
	switch {
	case !healthy:
		phase, ready = "Pending", "False"
	case restartPolicy == "Never" || restartPolicy == "OnFailure":
		phase, ready = "Succeeded", "False"
	}
	return map[string]any{
		"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready}},
	}
}
