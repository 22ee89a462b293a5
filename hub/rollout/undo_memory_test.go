package rollout

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// completes is the add-on of a cluster that completed a content an hour ago.
func completes(config addonv1beta1.AddOnConfig, cluster, hash string) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(fixture.AddOn(cluster, fixture.Has(config, hash)),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour)))
}

// fails is the add-on of cluster a, whose agent lets a content fail.
func fails(config addonv1beta1.AddOnConfig, hash string) *addonv1beta1.ManagedClusterAddOn {
	since := fixture.Noon().Add(-time.Minute)
	c := failedAt("Failed", config, since)
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(config, hash)}).String()
	return fixture.With(fixture.AddOn("a", fixture.Desires(config, hash)),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", since), c)
}

// cameBack is the same after it returned to v0, which it had before.
func cameBack(config addonv1beta1.AddOnConfig, hash string) *addonv1beta1.ManagedClusterAddOn {
	c := failedAt("Undone", config, fixture.Noon().Add(-time.Minute))
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(config, hash)}).String()
	return fixture.With(fixture.AddOn("a", fixture.Has(config, "v0")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Minute)), c)
}

// A content completed on all clusters weeks ago. A cluster joins, or the tenant of one deletes its add-on, which is
// created again, and its agent lets it fail. The policy asks for UndoAll.
//
// Shows: policies/undo-newcomer
func TestNoNewcomerTakesWhatCompletedFromTheOthers(t *testing.T) {
	cfg := fixture.Template("t")
	spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: time.Second}}}
	f, policy := underPolicy(cfg, spec, completes(cfg, "b", "new"), fails(cfg, "new"))
	policy.Status.Placements[0].Completed = []policies.CompletedContent{completed(cfg, "new"), completed(cfg, "old")}
	policy.Status = statusOf(f, decide(f))
	p := decide(f)
	old := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "old")})
	assert.False(t, p.admissions["b"].isAbout("", old), "cluster b is well with what completed, and loses it because of cluster a")
	assert.Empty(t, policy.Status.Undone)
}

// oneOfTen are the facts about a rollout at once to cluster a, whose agent attacks, and nine others.
func oneOfTen(
	config addonv1beta1.AddOnConfig, hash string, strategy clusterv1alpha1.RolloutStrategy, a *addonv1beta1.ManagedClusterAddOn, others string,
) facts {
	names, all := []string{"a"}, []*addonv1beta1.ManagedClusterAddOn{a}
	for i := range 9 {
		name := fmt.Sprintf("b%d", i)
		names, all = append(names, name), append(all, completes(config, name, others))
	}
	return facts{
		now: fixture.Noon(), states: addonconfig.States{config: {Hash: hash}},
		cma:        fixture.NewCMA(nil, fixture.ByStrategy(strategy, fixture.Placement("p", config))),
		placements: []*fleet.Decisions{selects(names...)}, members: membersOf(all...),
	}
}
func allAndSome() map[string]clusterv1alpha1.RolloutStrategy {
	return map[string]clusterv1alpha1.RolloutStrategy{
		"All": {Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{}},
		"Progressive, which tolerates 20%": {Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.FromString("100%"),
			RolloutConfig:  clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString("20%"), ProgressDeadline: "10m"},
		}},
	}
}

// oneFailsEach rolls out contents after each other, each well on nine of ten clusters. It returns the policy then.
func oneFailsEach(t *testing.T, strategy clusterv1alpha1.RolloutStrategy, contents ...string) *policies.AddOnPolicy {
	t.Helper()
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		OnFailure: &policies.OnFailure{Action: policies.ActionUndo},
	}}
	f := oneOfTen(cfg, "v0", strategy, completes(cfg, "a", "v0"), "v0")
	f.gate = gate.New("hello", policy, nil)
	policy.Status = statusOf(f, decide(f))
	require.Len(t, policy.Status.Placements[0].Completed, 1)
	for _, content := range contents {
		f := oneOfTen(cfg, content, strategy, fails(cfg, content), content)
		f.gate = gate.New("hello", policy, nil)
		require.True(t, decide(f).admissions["a"].undo)
		f.members["a"] = newMember(cameBack(cfg, content), nil).saw(nil, f.now)
		p := decide(f)
		require.Empty(t, p.placements[0].Stopped)
		policy.Status = statusOf(f, p)
	}
	return policy
}

// The agent of one cluster lets three contents fail, which are well everywhere else, and which the strategy tolerates.
//
// Shows: policies/undo-tries
func TestFailuresThatTheStrategyToleratesExhaustNoTries(t *testing.T) {
	cfg := fixture.Template("t")
	for name, strategy := range allAndSome() {
		t.Run(name, func(t *testing.T) {
			policy := oneFailsEach(t, strategy, "v1", "v2", "v3")
			f := oneOfTen(cfg, "v4", strategy, cameBack(cfg, "v3"), "v3")
			f.gate = gate.New("hello", policy, nil)
			p := decide(f)
			for i := range 9 {
				a := p.admissions[fmt.Sprintf("b%d", i)]
				require.True(t, a.granted, "cluster b%d: %s", i, a.reason)
			}
		})
	}
}

// The agent of one cluster lets each content fail, as a cluster does that is lost. They complete all the same, and a person
// who undoes the last one takes the others back to the one before it.
//
// Shows: policies/undo-completes
func TestAFailureThatTheStrategyToleratesKeepsNoContentFromCompleting(t *testing.T) {
	cfg := fixture.Template("t")
	for name, strategy := range allAndSome() {
		t.Run(name, func(t *testing.T) {
			policy := oneFailsEach(t, strategy, "v1", "v2")
			policy.Spec.Undo = []string{nameOf(cfg, "v2")}
			f := oneOfTen(cfg, "v2", strategy, cameBack(cfg, "v2"), "v2")
			f.gate = gate.New("hello", policy, nil)
			p := decide(f)
			want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v1")})
			assert.Equal(t, want, p.admissions["b0"].target, "nine of ten clusters were well with v1 before v2")
		})
	}
}

// Who may write a ClusterManagementAddOn, and no policy, lists 64 placements with 32 configurations each. What the policy
// remembers of it is bounded.
//
// Shows: policies/undo-bounded
func TestThePolicyOfALargeDefinitionCanBeStored(t *testing.T) {
	const largest = 1536 * 1024 // of etcd, by default
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll},
	}}
	for round := range 3 {
		f := facts{now: fixture.Noon(), states: addonconfig.States{}}
		var strategies []addonv1beta1.PlacementStrategy
		var all []*addonv1beta1.ManagedClusterAddOn
		for p := range 64 {
			var configs []addonv1beta1.AddOnConfig
			var has []addonv1beta1.ConfigReference
			for c := range 32 {
				config := addonv1beta1.AddOnConfig{
					ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
					ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: fmt.Sprintf("%0230d", c)},
				}
				hash := fmt.Sprintf("%062d%02d", c, round)
				f.states[config] = addonconfig.State{Hash: hash}
				configs, has = append(configs, config), append(has, fixture.Has(config, hash))
			}
			name := fmt.Sprintf("p%02d", p)
			strategies = append(strategies, fixture.Placement(name, configs...))
			f.placements = append(f.placements, selects(name))
			all = append(all, fixture.With(fixture.AddOn(name, has...),
				fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour))))
		}
		f.cma = fixture.NewCMA(nil, strategies...)
		f.members, f.gate = membersOf(all...), gate.New("hello", policy, nil)
		written, err := json.Marshal(f.cma.Spec)
		require.NoError(t, err)
		require.Less(t, len(written), largest, "the definition can be stored")
		policy.Status = statusOf(f, decide(f))
		said := policy.Status.Placements
		require.Len(t, said[0].Completed, 1, "each has one, those of the first placements are kept")
		require.Equal(t, fmt.Sprintf("%062d%02d", 0, round), said[0].Completed[0].Configurations[0].SpecHash)
		require.Empty(t, said[63].Completed)
		require.Contains(t, said[63].Problem, "are left out")
		require.Equal(t, policy.Status, statusOf(f, decide(f)), "nothing is written again")
	}
	written, err := json.Marshal(policy)
	require.NoError(t, err)
	assert.Less(t, len(written), largest)
}

// Three contents in a row were undone, so the next one is for a person to begin. An author, who may not write policies,
// lists another placement, which selects a cluster that has what it had all the time.
//
// Shows: policies/undo-tries
func TestACompletionInAnotherPlacementBeginsNoTriesAgain(t *testing.T) {
	cfg := fixture.Template("t")
	policy := oneFailsEach(t, allAndSome()["All"])
	for _, content := range []string{"v1", "v2", "v3"} {
		policy.Status.Undone = append(policy.Status.Undone, policies.Undone{
			Content: nameOf(cfg, content), By: policies.ByPolicy, Action: policies.ActionUndo, Placements: []string{"ns/p"}, Tries: []string{"ns/p"},
		})
	}
	fourth := func(second bool) facts {
		f := oneOfTen(cfg, "v4", allAndSome()["All"], cameBack(cfg, "v3"), "v3")
		if second {
			other := fixture.Template("u") // with the content that cluster z has, and always had
			f.states[other] = addonconfig.State{Hash: "z"}
			f.cma.Spec.InstallStrategy.Placements = append(f.cma.Spec.InstallStrategy.Placements, fixture.Placement("q", other))
			f.placements = append(f.placements, selects("z"))
			z := completes(other, "z", "z")
			f.members["z"] = newMember(z, nil).saw(nil, f.now)
		}
		f.gate = gate.New("hello", policy, nil)
		return f
	}
	f := fourth(false)
	require.False(t, decide(f).admissions["b0"].granted, "it waits for a person")
	f = fourth(true)
	policy.Status = statusOf(f, decide(f))
	f = fourth(true)
	assert.False(t, decide(f).admissions["b0"].granted, "it begins, and nobody approved it: %+v", policy.Status.Undone)
}

// A tenant of one cluster, who may write its ManagedClusterAddOn, names a configuration that does not exist. Contents
// complete for the placement all the same.
//
// Shows: policies/undo-completes
func TestAClusterThatItsTenantHoldsKeepsNoContentFromCompleting(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	a := completes(cfg, "a", "v0")
	f := oneOfTen(cfg, "v0", allAndSome()["All"], a, "v0")
	f.gate = gate.New("hello", policy, nil)
	policy.Status = statusOf(f, decide(f))
	for _, content := range []string{"v1", "v2"} {
		missing := addonv1beta1.AddOnConfig{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "a", Name: "missing"},
		}
		a := completes(cfg, "a", "v0")
		a.Spec.Configs = []addonv1beta1.AddOnConfig{missing}
		f = oneOfTen(cfg, content, allAndSome()["All"], a, content)
		f.states[missing] = addonconfig.State{Missing: true}
		f.gate = gate.New("hello", policy, nil)
		policy.Status = statusOf(f, decide(f))
	}
	assert.Equal(t, nameOf(cfg, "v2"), policy.Status.Placements[0].Completed[0].Content, "nine of ten clusters have it")
}

// The agent of one cluster was silent when the policy was created. A person can undo contents on nine others.
//
// Shows: policies/undo-completes
func TestOneSilentAgentTakesTheUndoFromNone(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	strategy := allAndSome()["Progressive, which tolerates 20%"]
	for _, content := range []string{"v1", "v2", "v3"} {
		f := oneOfTen(cfg, content, strategy, fails(cfg, content), content)
		f.now, f.gate = f.now.Add(time.Hour), gate.New("hello", policy, nil) // Its deadline is over.
		policy.Status = statusOf(f, decide(f))
	}
	policy.Spec.Undo = []string{nameOf(cfg, "v3")}
	f := oneOfTen(cfg, "v3", strategy, fails(cfg, "v3"), "v3")
	f.gate = gate.New("hello", policy, nil)
	p := decide(f)
	want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v2")})
	assert.Equal(t, want, p.admissions["b0"].target, "it was well with v2 before v3")
}
