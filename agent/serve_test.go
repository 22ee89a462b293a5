package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Shows: registration/acceptance-missing
func TestWhatIsMissingOfAnAcceptance(t *testing.T) {
	for name, c := range map[string]struct {
		accepts bool
		status  metav1.ConditionStatus
		says    string
	}{
		"nobody accepted it":              {says: "is not accepted: spec.hubAcceptsClient is false"},
		"the hub manager says so":         {status: metav1.ConditionFalse, says: "is not accepted: spec.hubAcceptsClient is false"},
		"the hub manager has the word":    {status: metav1.ConditionTrue},
		"no hub manager runs":             {accepts: true, says: "has no condition HubAcceptedManagedCluster: the hub manager sets it"},
		"the hub manager cannot grant it": {accepts: true, status: metav1.ConditionFalse, says: "HubAcceptedManagedCluster is False: why"},
		"all is there":                    {accepts: true, status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			own := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			own.Spec.HubAcceptsClient = c.accepts
			if c.status != "" {
				own.Status.Conditions = []metav1.Condition{{
					Type: clusterv1.ManagedClusterConditionHubAccepted, Status: c.status, Message: "why",
				}}
			}
			err := acceptance(own)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "ManagedCluster c1 ")
			assert.ErrorContains(t, err, c.says)
		})
	}
}
