package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons of the conditions that the agent writes, and the one of the hub that it takes back.
const (
	reasonJoined       = "ManagedClusterJoined"
	reasonAvailable    = "ManagedClusterAvailable"
	reasonUnavailable  = "ManagedClusterKubeAPIServerUnavailable"
	reasonLeaseStopped = "ManagedClusterLeaseUpdateStopped"
)

// conclude returns the ManagedCluster with the status that the facts and the plan lead to. What is unknown stays.
func conclude(f facts, p plan) *clusterv1.ManagedCluster {
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
		refresh(status, f)
	}
	return after
}

// refresh sets what is known of version, resources and claims. Lists that mean the same are left as they are written.
func refresh(status *clusterv1.ManagedClusterStatus, f facts) {
	if f.health.version != "" {
		status.Version.Kubernetes = f.health.version
	}
	if f.resources != nil {
		if !equality.Semantic.DeepEqual(status.Capacity, f.resources.capacity) {
			status.Capacity = f.resources.capacity
		}
		if !equality.Semantic.DeepEqual(status.Allocatable, f.resources.allocatable) {
			status.Allocatable = f.resources.allocatable
		}
	}
	if f.claims != nil && !slices.Equal(status.ClusterClaims, f.claims) {
		status.ClusterClaims = f.claims
	}
}
