package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
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

// Users returns, by control plane, who our programs are there, once all clusters have joined.
func (f *Fleet) Users(ctx context.Context) (map[string][]string, error) {
	account := func(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
	users := map[string][]string{HubName: {
		account(names.NamespaceHub, names.ServiceAccountManager), account(names.NamespaceHub, names.ServiceAccountAddons),
	}}
	for _, cluster := range f.Clusters() {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.NamespaceAgent, Name: names.SecretHub}
		if err := cluster.Client.Get(ctx, key, &secret); err != nil {
			return nil, fmt.Errorf("reading the credential of the agent of %s: %w", cluster.Name, err)
		}
		agent := csr.ClusterUser(cluster.Name, string(secret.Data[csr.KeyAgentName]))
		users[HubName] = append(users[HubName], agent)
		users[cluster.Name] = []string{account(names.NamespaceAgent, names.ServiceAccountAgent)}
	}
	return users, nil
}
