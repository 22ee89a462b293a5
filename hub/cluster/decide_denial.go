package cluster

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// A denial is recorded twice: by the annotation of the ManagedCluster that it was accepted before, and on the namespace
// of the cluster, which stays when the ManagedCluster is deleted.

// denied reports whether a cluster was accepted before and is no longer.
func denied(cluster *clusterv1.ManagedCluster) bool {
	return !cluster.Spec.HubAcceptsClient && names.AcceptedBefore(cluster, cluster.Status.Conditions)
}

// deniedBefore reports whether a cluster of this name was denied when it was deleted.
func deniedBefore(f facts) bool {
	return f.namespace != nil && f.namespace.Annotations[names.AnnotationDeniedOn] != ""
}

// recordDenial annotates the namespace of a denied cluster; none where nothing changes. A namespace without the label
// of the cluster belongs to others.
func recordDenial(f facts) []step {
	if f.namespace == nil || deniedBefore(f) || !denied(f.cluster) ||
		!hasLabels(f.namespace, map[string]string{names.LabelClusterName: f.name}) {
		return nil
	}
	after := f.namespace.DeepCopy()
	annotate(after, names.AnnotationDeniedOn, f.now)
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}

// forgetDenial removes that annotation from the namespace of an accepted cluster.
func forgetDenial(f facts) []step {
	if !deniedBefore(f) {
		return nil
	}
	after := f.namespace.DeepCopy()
	delete(after.Annotations, names.AnnotationDeniedOn)
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}
