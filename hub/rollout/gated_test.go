package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// paused is the gate of an add-on that is paused.
func paused() gate.Gate {
	return gate.New("hello", &policies.AddOnPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{Paused: &policies.Pause{}},
	}, nil)
}

// What waits for a policy is neither late nor failed, and nothing is wrong with it: it is not stuck.
func TestAClusterThatWaitsForAPolicyIsNotStuck(t *testing.T) {
	cfg := fixture.Template("t")
	waits := saying("Configured", metav1.ConditionFalse, "ConfigurationsNotConfigured",
		"Configurations updated and not configured yet: waits for its turn in the rollout: AddOnPolicy hello is paused",
		fixture.Noon().Add(-time.Minute))
	f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{},
		fixture.With(fixture.AddOn("a", fixture.Has(cfg, "old")), waits),
		fixture.With(fixture.AddOn("b", fixture.Has(cfg, "old")), waits))
	f.gate = paused()
	p := decide(f)
	require.EqualValues(t, 2, f.concludePolicy(f.gate.Policy(), p).Status.Waiting)
	said := conclude(f, p).Status.InstallProgressions[0].Conditions[0].Message
	assert.NotContains(t, said, "stuck")
}

// A plan admitted both, and their statuses do not show it yet: a hub manager writes to 3,000 add-ons for a while. Then the
// add-on is paused. By docs/reference/policies.md, a cluster begins when its ManagedClusterAddOn gets the content.
func TestWhoHasNotBegunDoesNotBeginAfterAPause(t *testing.T) {
	cfg := fixture.Template("t")
	f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{},
		fixture.AddOn("a", fixture.Has(cfg, "old")), fixture.AddOn("b", fixture.Has(cfg, "old")))
	before := decide(f)
	require.True(t, before.admissions["a"].granted)
	f.admitted, f.ways, f.gate = before.admissions, before.ways, paused()
	p := decide(f)
	assert.False(t, p.admissions["a"].granted, "it has not begun, and the add-on is paused")
	assert.EqualValues(t, 2, f.concludePolicy(f.gate.Policy(), p).Status.Waiting)
}

// With strategy All the configuration of the add-on asks the gate, and the plan only counts. It has to count the same.
func TestWhatWaitsForAPolicyIsNotLateWithStrategyAll(t *testing.T) {
	cfg := fixture.Template("t")
	f := facts{
		now: fixture.Noon(), states: addonconfig.States{cfg: {Hash: "new"}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{
				RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
			},
		}, fixture.Placement("p", cfg))),
		placements: []*fleet.Decisions{selects("a")},
		members:    membersOf([]*addonv1beta1.ManagedClusterAddOn{fixture.AddOn("a", fixture.Has(cfg, "old"))}...),
	}
	before := decide(f) // The gate is open: the content was edited a moment before the pause.
	f.admitted, f.ways, f.gate = before.admissions, before.ways, paused()
	f.now = f.now.Add(time.Hour) // The configuration of the add-on was asked after the pause, and holds it.
	p := decide(f)
	assert.EqualValues(t, 1, f.concludePolicy(f.gate.Policy(), p).Status.Waiting)
	assert.Equal(t, 0, p.placements[0].Counts.TimedOut, "%v", p.placements[0].Counts)
}
