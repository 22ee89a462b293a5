package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons of the conditions of the cluster that the agent writes, and the reason of the hub that it replaces.
const (
	reasonJoined       = "ManagedClusterJoined"
	reasonAvailable    = "ManagedClusterAvailable"
	reasonUnavailable  = "ManagedClusterKubeAPIServerUnavailable"
	reasonLeaseStopped = "ManagedClusterLeaseUpdateStopped"
)

// The condition of a managed namespace and its reasons.
const (
	conditionNamespace     = "NamespaceAvailable"
	reasonNamespaceApplied = "NamespaceApplied"
	reasonNamespaceFailed  = "NamespaceApplyFailed"
)

// conclude returns the ManagedCluster with the status after the pass. Unknown facts leave their fields unchanged.
func conclude(f facts, p plan, results map[string]error) *clusterv1.ManagedCluster {
	after := f.cluster.DeepCopy()
	if !p.publish {
		return after
	}
	status := &after.Status
	reconcile.SetCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue,
		Reason: reasonJoined, Message: "Managed cluster joined",
	}, f.now)
	switch p.availability {
	case keep:
	case available:
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
			Reason: reasonAvailable, Message: "Managed cluster is available",
		}, f.now)
	case unavailable:
		reconcile.SetCondition(&status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionFalse,
			Reason: reasonUnavailable, Message: "The kube-apiserver is not ok, " + f.health.detail,
		}, f.now)
	}
	if p.refresh {
		refresh(status, f, p.withhold)
		concludeNamespaces(status, f, results)
	}
	return after
}

// concludeNamespaces sets the condition of each namespace that the hub manages: whether it exists and has the label. It
// leaves the conditions of a cluster that is being deleted.
func concludeNamespaces(status *clusterv1.ManagedClusterStatus, f facts, results map[string]error) {
	if !f.cluster.DeletionTimestamp.IsZero() {
		return
	}
	leaving := map[string]bool{}
	for _, n := range f.namespaces {
		leaving[n.name] = n.deleting
	}
	for i := range status.ManagedNamespaces {
		entry := &status.ManagedNamespaces[i]
		want := metav1.Condition{
			Type: conditionNamespace, Status: metav1.ConditionTrue, Reason: reasonNamespaceApplied,
			Message: "The namespace exists and carries the label of the hub.",
		}
		switch err := results[entry.Name]; {
		case err != nil:
			want.Status, want.Reason, want.Message = metav1.ConditionFalse, reasonNamespaceFailed, err.Error()
		case leaving[entry.Name]:
			want.Status, want.Reason = metav1.ConditionFalse, reasonNamespaceFailed
			want.Message = "The namespace is being deleted on the managed cluster; it is made again as soon as it is gone."
		}
		reconcile.SetCondition(&entry.Conditions, want, f.now)
	}
}

// refresh sets version, resources and claims as far as they are known, without the resources if these are withheld.
// Equal lists are left unchanged.
func refresh(status *clusterv1.ManagedClusterStatus, f facts, withhold bool) {
	if f.health.version != "" {
		status.Version.Kubernetes = f.health.version
	}
	if f.resources != nil && !withhold {
		status.Capacity, status.Allocatable = withSums(f)
	}
	if f.claims != nil && !slices.Equal(status.ClusterClaims, f.claims) {
		status.ClusterClaims = f.claims
	}
}
