package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WaitAvailable waits until the hub says that a cluster was accepted, joined and is available.
func (f *Fleet) WaitAvailable(ctx context.Context, cluster *Cluster, note func(string)) error {
	return Wait(ctx, "cluster "+cluster.Name+" to be available", note, func(ctx context.Context) error {
		if cluster.Agent != nil {
			if err := cluster.Agent.Exited(); err != nil {
				return err
			}
		}
		var found clusterv1.ManagedCluster
		if err := f.HubClient.Get(ctx, client.ObjectKey{Name: cluster.Name}, &found); err != nil {
			return err
		}
		for _, want := range []string{
			clusterv1.ManagedClusterConditionHubAccepted,
			clusterv1.ManagedClusterConditionJoined,
			clusterv1.ManagedClusterConditionAvailable,
		} {
			condition := meta.FindStatusCondition(found.Status.Conditions, want)
			if condition == nil {
				return NotYet("%s: %s is not set", cluster.Name, want)
			}
			if condition.Status != metav1.ConditionTrue {
				return NotYet("%s: %s is %s: %s", cluster.Name, want, condition.Status, condition.Message)
			}
		}
		return nil
	})
}
