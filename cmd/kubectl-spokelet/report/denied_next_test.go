package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
)

// A denial is what an administrator does about a cluster that is not trusted any more, and a holder of a bootstrap
// credential can create a denied cluster again. The next command must not take the denial back, and approve the requests
// of the cluster with it; least of all for a person who only asked about an add-on.
func TestTheNextCommandTakesNoDenialBack(t *testing.T) {
	denied := &fleet.Cluster{Metadata: fleet.Meta{Name: "store-1"}}
	denied.Status.Conditions = []metav1.Condition{{
		Type: "HubAcceptedManagedCluster", Status: metav1.ConditionFalse, Reason: "HubClusterAdminDenied",
		Message: "Denied by hub cluster admin",
	}}
	addOn := &fleet.AddOn{Metadata: fleet.Meta{Name: "logs", Namespace: "store-1"}}
	addOn.Status.Conditions = []metav1.Condition{{
		Type: "Available", Status: metav1.ConditionUnknown, Reason: causes.ReasonClusterSilent,
	}}
	for sentence, chain := range map[string]Chain{
		"asked about the cluster": ClusterChain("store-1", ClusterFacts{Cluster: denied}),
		"asked about an add-on":   AddOnChain("store-1", "logs", AddOnFacts{AddOn: addOn, Cluster: denied}),
	} {
		t.Run(sentence, func(t *testing.T) {
			require.NotNil(t, chain.Problem)
			require.Equal(t, causes.ClusterDenied, chain.Problem.Code)
			assert.NotContains(t, chain.Problem.Next, "approve")
		})
	}
}
