package rollout

import (
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

// silent is the add-on of cluster a that got a content a day ago, and of which its agent says nothing.
func silent(config addonv1beta1.AddOnConfig, hash string) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(fixture.AddOn("a", fixture.Desires(config, hash)),
		fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", fixture.Noon().Add(-24*time.Hour)))
}

// The agent of one of ten clusters says nothing, under OCM's default strategy, which is All without a progressDeadline.
// The nine others are well with each content, and a person wants the last one undone.
//
// Shows: policies/undo-completes
func TestASilentAgentTakesTheUndoFromNoneUnderTheDefaultStrategy(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	strategy := allAndSome()["All"]
	for _, content := range []string{"v1", "v2", "v3"} {
		f := oneOfTen(cfg, content, strategy, silent(cfg, content), content)
		f.now, f.gate = f.now.Add(24*time.Hour), gate.New("hello", policy, nil)
		policy.Status = statusOf(f, decide(f))
	}
	policy.Spec.Undo = []string{nameOf(cfg, "v3")}
	f := oneOfTen(cfg, "v3", strategy, silent(cfg, "v3"), "v3")
	f.now, f.gate = f.now.Add(24*time.Hour), gate.New("hello", policy, nil)
	p := decide(f)
	want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v2")})
	assert.Equal(t, want, p.admissions["b0"].target, "it was well with v2 for a day; %+v", statusOf(f, p).Placements)
}

// One of ten clusters got a content a day ago, without a deadline, and says nothing since. A look at the right instant
// finds out that it completed, whoever installed it.
//
// Shows: policies/undo-completes
func TestAContentCompletesAnHourAfterTheLastClusterGotIt(t *testing.T) {
	cfg := fixture.Template("t")
	got := fixture.Noon().Add(-24 * time.Hour)
	for sentence, people := range map[string]bool{"by a placement": false, "by people": true} {
		for after, want := range map[time.Duration]int{time.Minute: 0, time.Hour: 1} {
			f := oneOfTen(cfg, "v1", allAndSome()["All"], silent(cfg, "v1"), "v1")
			if people {
				f.cma, f.placements = fixture.NewCMA([]addonv1beta1.AddOnConfig{cfg}), nil
			}
			f.now = got.Add(after)
			f.gate = gate.New("hello", &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}, nil)
			p := decide(f)
			assert.Len(t, statusOf(f, p).Placements[0].Completed, want, "%s, after %s", sentence, after)
			if want == 0 {
				assert.Equal(t, got.Add(time.Hour), p.wake, sentence)
			}
		}
	}
}

// The tenant of one of ten clusters deletes its add-on and keeps it by a finalizer.
//
// Shows: policies/undo-completes
func TestATenantWhoKeepsItsDeletedAddOnTakesTheUndoFromNone(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	at := func(content string) facts {
		a := completes(cfg, "a", "v0")
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: fixture.Noon()}, []string{"example.com/stay"}
		f := oneOfTen(cfg, content, allAndSome()["All"], a, content)
		f.now, f.gate = f.now.Add(24*time.Hour), gate.New("hello", policy, nil)
		f.served = map[string]bool{"a": true}
		return f
	}
	for _, content := range []string{"v1", "v2", "v3"} {
		f := at(content)
		policy.Status = statusOf(f, decide(f))
	}
	policy.Spec.Undo = []string{nameOf(cfg, "v3")}
	p := decide(at("v3"))
	want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v2")})
	assert.Equal(t, want, p.admissions["b0"].target)
}

// The agent of one of ten clusters says that an add-on on which this one depends is not available, for ever. Contents
// complete on the nine others, and a person can undo them.
//
// Shows: policies/undo-completes
func TestOneClusterThatWaitsForADependencyTakesTheUndoFromNone(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		DependsOn: []policies.Dependency{{Name: "network"}},
	}}
	for name, strategy := range allAndSome() {
		t.Run(name, func(t *testing.T) {
			policy := policy.DeepCopy()
			if strategy.Progressive != nil {
				strategy.Progressive.MaxFailures = intstr.FromInt32(0)
			}
			gated := func(f *facts) {
				f.gate = gate.New("hello", policy, nil).
					After("hello", gate.NewOrder([]policies.AddOnPolicy{*policy}), func(string) bool { return true })
				f.clusters = map[string]gate.Cluster{"a": {Before: map[string]gate.State{"network": {Lacks: "whose condition Available is False"}}}}
			}
			for _, content := range []string{"v1", "v2", "v3"} {
				f := oneOfTen(cfg, content, strategy, completes(cfg, "a", "v0"), content)
				gated(&f)
				policy.Status = statusOf(f, decide(f))
			}
			policy.Spec.Undo = []string{nameOf(cfg, "v3")}
			f := oneOfTen(cfg, "v3", strategy, completes(cfg, "a", "v0"), "v3")
			gated(&f)
			want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v2")})
			assert.Equal(t, want, decide(f).admissions["b0"].target, "nine of ten were well with v2 before v3")
		})
	}
}

// Of add-ons that people install, a tenant of one cluster names a configuration that does not exist.
//
// Shows: policies/undo-completes
func TestATenantWhoHoldsItsOwnAddOnKeepsNoContentFromCompletingWherePeopleInstall(t *testing.T) {
	cfg := fixture.Template("t")
	missing := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{
			Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
		},
		ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "a", Name: "missing"},
	}
	_, policy := underPolicy(cfg, policies.AddOnPolicySpec{}, completes(cfg, "a", "v0"))
	policy.Status.Placements = nil
	for _, content := range []string{"v0", "v1", "v2"} {
		a := completes(cfg, "a", "v0")
		if content != "v0" {
			a.Spec.Configs = []addonv1beta1.AddOnConfig{missing}
		}
		f := oneOfTen(cfg, content, allAndSome()["All"], a, content)
		f.cma, f.placements = fixture.NewCMA([]addonv1beta1.AddOnConfig{cfg}), nil
		f.states[missing] = addonconfig.State{Missing: true}
		f.gate = gate.New("hello", policy, nil)
		policy.Status = statusOf(f, decide(f))
	}
	require.Len(t, policy.Status.Placements, 1)
	assert.Equal(t, nameOf(cfg, "v2"), policy.Status.Placements[0].Completed[0].Content, "nine of ten clusters have it")
}

// Three contents in a row were undone in a placement, so that the next one waits for a person. The author of the Placement,
// who may not approve, has it select for a moment one cluster only, which has that content by another placement.
//
// Shows: policies/undo-evidence
func TestWhoWritesAPlacementApprovesNothingByItsDecisions(t *testing.T) {
	cfg := fixture.Template("t")
	policy := oneFailsEach(t, allAndSome()["All"])
	for _, content := range []string{"v1", "v2", "v3"} {
		policy.Status.Undone = append(policy.Status.Undone, policies.Undone{
			Content: nameOf(cfg, content), By: policies.ByPolicy, Action: policies.ActionUndo, Placements: []string{"ns/p"}, Tries: []string{"ns/p"},
		})
	}
	fourth := func(narrow bool) facts {
		f := oneOfTen(cfg, "v4", allAndSome()["All"], cameBack(cfg, "v3"), "v3")
		f.members["z"] = newMember(completes(cfg, "z", "v4"), nil).saw(nil, f.now)
		if narrow {
			f.placements = []*fleet.Decisions{selects("z")}
		}
		f.gate = gate.New("hello", policy, nil)
		return f
	}
	f := fourth(false)
	require.False(t, decide(f).admissions["b0"].granted, "it waits for a person")
	f = fourth(true)
	policy.Status = statusOf(f, decide(f))
	f = fourth(false)
	assert.False(t, decide(f).admissions["b0"].granted, "it begins on nine clusters, and nobody approved it: %+v", policy.Status)
}

// A tenant of one of two clusters names configurations of its own, so that its cluster is well whatever the rollout gives.
// The content fails on the other one, the only one that gets it.
//
// Shows: policies/undo-evidence
func TestAClusterWithConfigurationsOfItsOwnCompletesNoContent(t *testing.T) {
	cfg := fixture.Template("t")
	own := fixture.Template("own")
	for name, strategy := range map[string]clusterv1alpha1.RolloutStrategy{"All": allAndSome()["All"]} {
		t.Run(name, func(t *testing.T) {
			policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
				OnFailure: &policies.OnFailure{Action: policies.ActionUndo, MaxTries: 1},
			}}
			z := completes(own, "z", "mine")
			z.Spec.Configs = []addonv1beta1.AddOnConfig{own}
			f := oneOfTen(cfg, "v1", strategy, cameBack(cfg, "v1"), "v0")
			f.placements = []*fleet.Decisions{selects("a", "z")}
			f.states[own] = addonconfig.State{Hash: "mine"}
			f.members = membersOf(cameBack(cfg, "v1"), z)
			f.gate = gate.New("hello", policy, nil)
			p := decide(f)
			policy.Status = statusOf(f, p)
			assert.Empty(t, policy.Status.Placements[0].Completed, "no cluster has v1")
		})
	}
}

// Contents need an approval. The cluster of a tenant has v2, which nobody approves, by its own spec.configs, and the author
// of the Placement has it select that cluster alone for a moment. Then v3 is approved, and a person undoes it.
//
// Shows: policies/undo-evidence
func TestAReturnGivesNothingThatNobodyApproved(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		Approval: policies.ApprovalPerRollout, Approved: []string{nameOf(cfg, "v1")},
	}}
	at := func(content, has string, narrow bool) facts {
		f := oneOfTen(cfg, content, allAndSome()["All"], completes(cfg, "a", has), has)
		z := completes(cfg, "z", "v2")
		z.Spec.Configs = []addonv1beta1.AddOnConfig{cfg}
		f.members["z"] = newMember(z, nil).saw(nil, f.now)
		if narrow {
			f.placements = []*fleet.Decisions{selects("z")}
		}
		f.gate = gate.New("hello", policy, nil)
		return f
	}
	f := at("v1", "v1", false)
	policy.Status = statusOf(f, decide(f))
	require.Equal(t, nameOf(cfg, "v1"), policy.Status.Placements[0].Completed[0].Content)
	f = at("v2", "v1", false)
	require.False(t, decide(f).admissions["b0"].granted, "nobody approved v2")
	policy.Status = statusOf(f, decide(f))
	f = at("v2", "v1", true)
	policy.Status = statusOf(f, decide(f))
	f = at("v2", "v1", false)
	require.False(t, decide(f).admissions["b0"].granted, "nobody approved v2")
	policy.Status = statusOf(f, decide(f))

	policy.Spec.Approved = append(policy.Spec.Approved, nameOf(cfg, "v3"))
	policy.Spec.Undo = []string{nameOf(cfg, "v3")}
	f = at("v3", "v3", false)
	p := decide(f)
	want := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "v1")})
	assert.Equal(t, want, p.admissions["b0"].target, "the clusters return to what nobody approved: granted %v", p.admissions["b0"].granted)
}

// All clusters wait for a dependency, under a strategy that tolerates that, but for the one of a tenant that has the content
// by its own spec.configs.
//
// Shows: policies/undo-evidence
func TestAContentThatAllWaitForDoesNotCompleteByATenant(t *testing.T) {
	cfg := fixture.Template("t")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		DependsOn: []policies.Dependency{{Name: "network"}},
	}}
	a := completes(cfg, "a", "v2")
	a.Spec.Configs = []addonv1beta1.AddOnConfig{cfg}
	f := oneOfTen(cfg, "v2", allAndSome()["All"], a, "v1")
	f.placements = []*fleet.Decisions{selects("a", "b0")}
	g := gate.New("hello", policy, nil)
	order := gate.NewOrder([]policies.AddOnPolicy{*policy})
	f.gate = g.After("hello", order, func(string) bool { return true })
	f.clusters = map[string]gate.Cluster{
		"b0": {Before: map[string]gate.State{"network": {Absent: true}}}, "a": {Before: map[string]gate.State{"network": {Absent: true}}},
	}
	p := decide(f)
	require.False(t, p.admissions["b0"].granted, p.admissions["b0"].reason)
	assert.Empty(t, statusOf(f, p).Placements[0].Completed, "no cluster got v2 by the rollout: %s", p.admissions["b0"].reason)
}
