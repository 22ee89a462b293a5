package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// Of two clusters in turns, the first has a dependency that is not well there.
//
// Shows: policies/depends-groups
func TestWhoWaitsForADependencyKeepsNoTurn(t *testing.T) {
	cfg := fixture.Template("t")
	policy := policies.AddOnPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec:       policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{Name: "network"}}},
	}
	for sentence, tc := range map[string]struct {
		state gate.State
		stuck int
	}{
		"it is missing, and told as stuck": {gate.State{Absent: true}, 1},
		"it is on its way":                 {gate.State{Changes: "which is on its way"}, 0},
	} {
		f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{},
			fixture.AddOn("a", fixture.Has(cfg, "old")), fixture.AddOn("b", fixture.Has(cfg, "old")))
		f.members["a"].cause = &metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionConfigured}
		f.gate = gate.New("hello", &policy, nil).
			After("hello", gate.NewOrder([]policies.AddOnPolicy{policy}), func(string) bool { return true })
		f.clusters = map[string]gate.Cluster{"a": {Before: map[string]gate.State{"network": tc.state}}}
		p := decide(f)
		assert.False(t, p.admissions["a"].granted, sentence)
		assert.Contains(t, p.admissions["a"].reason, "it depends on add-on network", sentence)
		assert.True(t, p.admissions["b"].granted, sentence)
		assert.Equal(t, tc.stuck, p.stuck[0].count, sentence)
		assert.EqualValues(t, 1, concludeGate(f.gate.Policy(), p.gated).Status.Waiting, sentence)
	}
}

// Group 0 is the canary. Its agent says that the dependency is not well there, or that it is on its way, for ever.
//
// Shows: policies/depends-waves
func TestACanaryThatWaitsForADependencyReleasesWhatIsTolerated(t *testing.T) {
	cfg := fixture.Template("t")
	policy := policies.AddOnPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec:       policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{Name: "network"}}},
	}
	for sentence, state := range map[string]gate.State{
		"broken": {Lacks: "whose condition Available is False"}, "on its way": {Changes: "which is on its way"},
	} {
		for failures, released := range map[string]bool{"0": false, "100%": true} {
			f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{},
				fixture.AddOn("a", fixture.Has(cfg, "old")), fixture.AddOn("b", fixture.Has(cfg, "old")))
			f.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
					RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString(failures)},
				},
			}
			f.placements[0].Groups = map[string]fleet.Group{"a": {Index: 0}, "b": {Index: 1}}
			f.gate = gate.New("hello", &policy, nil).
				After("hello", gate.NewOrder([]policies.AddOnPolicy{policy}), func(string) bool { return true })
			f.clusters = map[string]gate.Cluster{"a": {Before: map[string]gate.State{"network": state}}}
			p := decide(f)
			assert.Equal(t, released, p.admissions["b"].granted, "%s, %s", sentence, failures)
		}
	}
}

func TestWhichClustersHaveNothingToBegin(t *testing.T) {
	cfg := fixture.Template("t")
	f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{},
		fixture.AddOn("a", fixture.Has(cfg, "new")), fixture.AddOn("b", fixture.Has(cfg, "old")),
		fixture.AddOn("unselected", fixture.Has(cfg, "new")), fixture.AddOn("c"))
	has := f.has()
	for cluster, want := range map[string]bool{"a": true, "b": false, "unselected": false, "c": false} {
		assert.Equal(t, want, has(f.members[cluster]), cluster)
	}
	own := f.members["a"]
	own.configs = []addonv1beta1.AddOnConfig{cfg}
	assert.False(t, has(own), "it names configurations itself")
	f.states = addonconfig.States{}
	assert.False(t, f.has()(f.members["b"]))
}
