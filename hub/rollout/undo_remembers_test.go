package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
)

// A content failed on one of ten clusters, which the strategy tolerates, and was undone there. An author takes the edit
// back, and makes it again before anything new completes.
//
// Shows: policies/undo-remembers
func TestAToleratedUndoIsNotForgottenBecauseTheSpecsAskForSomethingElse(t *testing.T) {
	cfg := fixture.Template("t")
	for name, strategy := range allAndSome() {
		t.Run(name, func(t *testing.T) {
			policy := oneFailsEach(t, strategy, "v1")
			require.Len(t, policy.Status.Undone, 1)
			f := oneOfTen(cfg, "v0", strategy, cameBack(cfg, "v1"), "v1") // It completed before.
			f.gate = gate.New("hello", policy, nil)
			policy.Status = statusOf(f, decide(f))
			assert.Len(t, policy.Status.Undone, 1, "it is forgotten though nothing new completed")
			assert.True(t, gate.New("hello", policy, nil).Remembers(nameOf(cfg, "v1")), "and a gets it again when it comes back")
		})
	}
}

// The same, with another content in between that is on its way and does not complete.
//
// Shows: policies/undo-remembers
func TestWhatOneClusterReturnedFromIsNotGivenAgainWhenTheSpecsComeBack(t *testing.T) {
	cfg := fixture.Template("t")
	for name, strategy := range allAndSome() {
		t.Run(name, func(t *testing.T) {
			policy := oneFailsEach(t, strategy, "v1")
			require.Len(t, policy.Status.Undone, 1)
			// v2 comes, and is on its way everywhere.
			f := oneOfTen(cfg, "v2", strategy, cameBack(cfg, "v1"), "v1")
			f.gate = gate.New("hello", policy, nil)
			p := decide(f)
			require.NotEqual(t, nameOf(cfg, "v2"), statusOf(f, p).Placements[0].Completed[0].Content, "v2 did not complete")
			policy.Status = statusOf(f, p)
			assert.NotEmpty(t, policy.Status.Undone, "nothing completed in the meantime")
		})
	}
}

// An author, who may write no policy, takes a placement out of the list, or says that people install the add-on, and puts
// it back with another content.
//
// Shows: policies/undo-remembers
func TestAPlacementThatIsTakenOutOfTheListForAMomentIsRemembered(t *testing.T) {
	cfg := fixture.Template("t")
	for _, edit := range []string{"the list has no placement", "people install it"} {
		t.Run(edit, func(t *testing.T) {
			policy := oneFailsEach(t, allAndSome()["All"], "v1")
			require.Len(t, policy.Status.Placements[0].Completed, 2)
			f := oneOfTen(cfg, "v1", allAndSome()["All"], cameBack(cfg, "v1"), "v1")
			f.gate = gate.New("hello", policy, nil)
			f.placements, f.cma.Spec.InstallStrategy.Placements = nil, nil
			if edit == "people install it" {
				f.cma = fixture.NewCMA(nil)
			}
			policy.Status = statusOf(f, decide(f))

			f = oneOfTen(cfg, "v2", allAndSome()["All"], cameBack(cfg, "v1"), "v1")
			f.gate = gate.New("hello", policy, nil)
			policy.Status = statusOf(f, decide(f))
			var known []policies.CompletedContent
			for _, p := range policy.Status.Placements {
				if p.Placement == "ns/p" {
					known = p.Completed
				}
			}
			assert.NotEmpty(t, known, "nothing is known that a failed v2 could be replaced by")
		})
	}
}

// A person undoes for all clusters what the policy undid on one.
func TestAPolicySaysThatAPersonUndidForAllWhatItUndidOnOneCluster(t *testing.T) {
	cfg := fixture.Template("t")
	policy := oneFailsEach(t, allAndSome()["All"], "v1")
	policy.Spec.Undo = []string{nameOf(cfg, "v1")}
	f := oneOfTen(cfg, "v1", allAndSome()["All"], cameBack(cfg, "v1"), "v1")
	f.gate = gate.New("hello", policy, nil)
	status := statusOf(f, decide(f))
	require.Len(t, status.Undone, 2)
	person, policys := status.Undone[0], status.Undone[1]
	assert.Equal(t, policies.ByPerson, person.By)
	assert.Equal(t, policies.ActionUndoAll, person.Action)
	assert.EqualValues(t, 10, person.Clusters, "all are kept from it")
	assert.Equal(t, policies.ActionUndo, policys.Action, "what the policy undid stays beside it")
	assert.Zero(t, policys.Clusters)
}

// UndoAll waits for spec.onFailure.after, or for the end of a pause.
func TestAnUndoOfAllThatWaitsSaysSo(t *testing.T) {
	cfg := fixture.Template("t")
	hour := &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: time.Hour}}
	for sentence, tc := range map[string]struct {
		spec policies.AddOnPolicySpec
		says string
	}{
		"after an hour": {policies.AddOnPolicySpec{OnFailure: hour}, "2030-01-01T12:59:00Z"},
		"paused": {policies.AddOnPolicySpec{
			OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}, Paused: &policies.Pause{Reason: "ask Ann"},
		}, "ask Ann"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f, _ := underPolicy(cfg, tc.spec, broken(cfg, fixture.Noon().Add(-time.Minute)), fixture.AddOn("b", fixture.Has(cfg, "old")))
			p := decide(f)
			require.NotEmpty(t, p.placements[0].Failing)
			status, cma := statusOf(f, p), conclude(f, p)
			said := status.Problem + " " + p.admissions["a"].notUndone
			for _, placement := range status.Placements {
				said += " " + placement.Problem
			}
			for _, progression := range cma.Status.InstallProgressions {
				for _, c := range progression.Conditions {
					said += " " + c.Message
				}
			}
			assert.Contains(t, said, tc.says)
		})
	}
}

// Each of many contents that were undone has 100 configurations, of which the status names 32 at most, and fewer of the
// oldest.
//
// Shows: policies/undo-bounded
func TestWhatIsLeftOutOfTheConfigurationsOfAnUndoneContentIsCounted(t *testing.T) {
	cfg := fixture.Template("t")
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{}, completes(cfg, "a", "new"))
	for i := range 33 {
		u := undoneByPolicy(fmt.Sprintf("c%02d", i), policies.ActionUndoAll)
		u.Placements, u.Since = []string{"ns/q"}, metav1.NewTime(fixture.Noon().Add(time.Duration(i-100)*time.Hour))
		for n := range 100 {
			u.Configurations = append(u.Configurations, fmt.Sprintf("addontemplates//t%02d", n))
		}
		u.Configurations = message.Items(u.Configurations, policies.MaxConfigurations) // As when it was undone.
		policy.Status.Undone = append(policy.Status.Undone, u)
	}
	oldest := statusOf(f, decide(f)).Undone[0].Configurations
	last := oldest[len(oldest)-1]
	assert.Equal(t, fmt.Sprintf("and %d more", 100-(len(oldest)-1)), last)
}

// The clock of the hub manager before this one was a day ahead when it wrote that a cluster failed.
//
// Shows: policies/undo-restart
func TestAClockThatWasAheadHoldsNoReturn(t *testing.T) {
	cfg := fixture.Template("t")
	for action := range map[policies.Action]bool{policies.ActionUndo: true, policies.ActionUndoAll: true} {
		t.Run(string(action), func(t *testing.T) {
			spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: action, After: metav1.Duration{Duration: 10 * time.Minute}}}
			a := broken(cfg, fixture.Noon().Add(24*time.Hour))
			f, policy := underPolicy(cfg, spec, a, fixture.AddOn("b", fixture.Has(cfg, "old")))
			var p plan
			for range 60 { // An hour.
				p = decide(f)
				policy.Status = statusOf(f, p)
				f.admitted, f.ways, f.now = p.admissions, p.ways, f.now.Add(time.Minute)
				before := f.members["a"]
				f.members["a"] = newMember(a, nil).saw(before, f.now)
			}
			assert.True(t, p.admissions["a"].undo || len(policy.Status.Undone) > 0,
				"it failed an hour ago, and after is 10m: %s; wakes at %s", p.admissions["a"].notUndone, p.wake)
		})
	}
}

// What completed weeks ago on one cluster has more configurations than a status keeps of a content. Another one joins and
// fails.
//
// Shows: policies/undo-newcomer
func TestNoNewcomerTakesALargeContentThatCompletedFromTheOthers(t *testing.T) {
	var configs []addonv1beta1.AddOnConfig
	var has, gets []addonv1beta1.ConfigReference
	states := addonconfig.States{}
	for c := range policies.MaxConfigurations + 1 {
		config := fixture.Template(fmt.Sprintf("t%02d", c))
		configs, has = append(configs, config), append(has, fixture.Has(config, "new"))
		gets = append(gets, fixture.Desires(config, "new"))
		states[config] = addonconfig.State{Hash: "new"}
	}
	cfg := configs[0]
	spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: time.Second}}}
	ago := fixture.Noon().Add(-time.Hour)
	well := fixture.With(fixture.AddOn("b", has...), fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", ago))
	f, policy := underPolicy(cfg, spec, well)
	f.states, f.cma.Spec.InstallStrategy.Placements[0].Configs = states, configs
	f.placements[0].Names = []string{"b"}
	policy.Status = statusOf(f, decide(f))
	require.Equal(t, "1", fmt.Sprint(decide(f).placements[0].Counts.Done), "it completed, a day before a joins")

	c := failedAt("Failed", cfg, ago)
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf(gets).String()
	a := fixture.With(fixture.AddOn("a", gets...), fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", ago), c)
	f.placements[0].Names = []string{"a", "b"}
	f.members = membersOf(a, well)
	policy.Status = statusOf(f, decide(f))
	assert.Empty(t, policy.Status.Undone, "b has what completed, and loses it because of cluster a")
}

// An add-on failed with a content and returned from it. It is created again: it gets what it had, unless the policy is
// paused, as every add-on that begins.
//
// Shows: policies/undo-person
func TestAPauseHoldsAnAddOnThatIsCreatedAgainAndWouldReturn(t *testing.T) {
	cfg := fixture.Template("t")
	for sentence, paused := range map[string]*policies.Pause{"it begins": nil, "it waits": {Reason: "ask Ann"}} {
		t.Run(sentence, func(t *testing.T) {
			f, _ := underPolicy(cfg, policies.AddOnPolicySpec{
				OnFailure: &policies.OnFailure{Action: policies.ActionUndo}, Paused: paused,
			}, fixture.AddOn("a"))
			f.ways = map[string]way{"a": {
				target: addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "new")}), failed: true, undone: true,
			}}
			a := decide(f).admissions["a"]
			assert.True(t, a.undo, "it does not get again what it failed with")
			assert.Equal(t, paused == nil, a.granted, a.reason)
			assert.Equal(t, paused != nil, strings.Contains(a.reason, "is paused: ask Ann"), a.reason)
		})
	}
}

// The add-on of cluster a failed two days ago, and was deleted before its status said so; a finalizer keeps it. The
// policy undoes what failed for an hour.
//
// Shows: policies/undo-restart
func TestAnAddOnThatGoesHasFailedSinceItsWayBegan(t *testing.T) {
	cfg := fixture.Template("t")
	hour := &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: time.Hour}}
	a := fixture.AddOn("a", fixture.Desires(cfg, "new"))
	a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: fixture.Noon().Add(-47 * time.Hour)}, []string{"example.com/stay"}
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{OnFailure: hour}, a, fixture.AddOn("b", fixture.Has(cfg, "old")))
	f.served = map[string]bool{"a": true, "b": true}
	common := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "new")})
	f.ways = map[string]way{"a": {target: common, failed: true, broke: true, since: fixture.Noon().Add(-48 * time.Hour)}}
	p := decide(f)
	require.NotEmpty(t, p.placements[0].Failing)
	assert.NotEmpty(t, f.concludePolicy(policy, p).Status.Undone, "it failed two days ago, and the policy waits for an hour")
}

// Cluster a of placement p failed with v1 and returned, as its strategy tolerates, and p asks for v0 again, which
// completed long ago. Another placement, q, completes something new.
//
// Shows: policies/undo-remembers
func TestACompletionInAnotherPlacementForgetsNoToleratedUndo(t *testing.T) {
	cfg := fixture.Template("t")
	v1 := nameOf(cfg, "v1")
	before := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	before.Status.Undone = []policies.Undone{{Content: v1, By: policies.ByPolicy, Action: policies.ActionUndo, Placements: []string{"ns/p"}}}
	f := facts{now: fixture.Noon(), gate: gate.New("hello", before, nil)}
	after := f.undone(before, []*undoing{
		{placement: "ns/p", content: nameOf(cfg, "v0"), returned: sets.New[string]()},
		{placement: "ns/q", content: nameOf(cfg, "w9"), returned: sets.New[string](), completes: true},
	}, sets.New("ns/q"))
	require.Len(t, after, 1, "when the specs of p ask for v1 again, the cluster gets what it failed with")
}
