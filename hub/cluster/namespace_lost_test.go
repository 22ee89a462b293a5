package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Something that keeps the namespaces of the hub, such as Terraform, takes the label away from the namespace of a cluster
// that runs for a year. Nothing new is granted until an administrator puts it back, and nothing is taken away. But an
// agent whose cluster is not accepted stops renewing its lease, as the condition HubAcceptedManagedCluster says.
func TestAClusterThatRunsStaysAcceptedWhenItsNamespaceLosesTheLabel(t *testing.T) {
	f := settledFacts()
	f.have = renderGrants("c1", true)
	f.namespace.Labels = nil
	meta.SetStatusCondition(&f.cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: reasonAccepted,
	})
	f.cluster = conclude(f, decide(f), nil, f.cluster)
	assert.True(t, meta.IsStatusConditionTrue(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted),
		"all agents of the cluster go Unknown within minutes, though they have all their rights")
}
