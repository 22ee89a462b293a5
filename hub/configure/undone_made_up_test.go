package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// progressive is an add-on that has "low", which its placement asks for with a strategy of turns.
func progressive(t *testing.T) (s *selected, low []addonv1beta1.ConfigReference) {
	t.Helper()
	p := placement("low", "c1")
	s = newSelected(t, "low", []string{"low"}, p.placement, p.page)
	cma, err := s.c.AddOns.GetClusterManagementAddOn(t.Context(), "hello")
	require.NoError(t, err)
	cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{},
	}
	require.NoError(t, s.c.Client.Update(t.Context(), addonapi.ClusterManagementAddOnToAlpha(cma)))
	return s, s.addOn.Status.ConfigReferences
}

// The agent of a cluster may write the status of its add-on: it names a configuration of others as what was applied
// last, and lets its add-on fail. Of configurations that no spec names, only stored contents count.
func TestAnAgentDoesNotReturnToWhatItMadeUp(t *testing.T) {
	s, _ := progressive(t)
	high := fixture.DeploymentConfig("high") // It exists, and nobody named it for this add-on.
	states, err := s.c.Store.States(t.Context(), high)
	require.NoError(t, err)
	s.addOn.Status.ConfigReferences[0].LastAppliedConfig = fixture.Hashed(high, states[high].Hash)
	fixture.With(s.addOn, fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", fixture.Noon()))
	s.c.Admission = func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
		return addonconfig.Admission{Granted: true, Undo: true, Way: addonconfig.Way{
			Stage: addonconfig.ReasonFailed, Progress: fixture.Noon().Unix(),
		}}
	}
	s.c.Gates = &gate.Reader{AddOns: s.c.AddOns, Client: &ruling{
		policy: &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: undoSpec()},
	}}
	result, err := s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err)
	for _, config := range result.Choice.Configs {
		assert.NotEqual(t, "high", config.Name, "the agent gets a configuration of others, by the name that it wrote")
	}
}
