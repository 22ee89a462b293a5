package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// nameOf is the name of a content of one template.
func nameOf(config addonv1beta1.AddOnConfig, hash string) string {
	return gate.ContentName("hello", addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(config, hash)}))
}

// completed is what a status says of a content of one template that completed.
func completed(config addonv1beta1.AddOnConfig, hash string) policies.CompletedContent {
	return gate.CompletedContent(nameOf(config, hash), []addonconfig.Chosen{{
		ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(config, hash),
	}})
}

// failedAt is the condition of an add-on that the rollout counts as failed with a template of content "new".
func failedAt(reason string, config addonv1beta1.AddOnConfig, since time.Time) metav1.Condition {
	c := fixture.Condition(names.ConditionRolloutFailed, metav1.ConditionTrue, reason, since)
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{
		fixture.Desires(config, "new"),
	}).String()
	return c
}

// broken is the add-on of cluster a that failed with content "new", and what its status says of that.
func broken(config addonv1beta1.AddOnConfig, since time.Time) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(fixture.AddOn("a", fixture.Desires(config, "new")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", since), failedAt("Failed", config, since))
}

// underPolicy is a rollout of content "new" to a and b, one after the other, whose policy knows that "old" completed.
func underPolicy(
	config addonv1beta1.AddOnConfig, spec policies.AddOnPolicySpec, addOns ...*addonv1beta1.ManagedClusterAddOn,
) (facts, *policies.AddOnPolicy) {
	f := oneByOne(config, "new", clusterv1alpha1.RolloutConfig{}, addOns...)
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: spec}
	policy.Status.Placements = []policies.PlacementContents{{
		Placement: "ns/p", Content: nameOf(config, "new"),
		Completed: []policies.CompletedContent{completed(config, "old")},
	}}
	f.gate = gate.New("hello", policy, nil)
	return f, policy
}

// statusOf is the status of the policy after a plan.
func statusOf(f facts, p plan) policies.AddOnPolicyStatus {
	return f.concludePolicy(f.gate.Policy(), p).Status
}

// Each case is planned by a process that knows the objects alone, as one that was started just now, or a second one.
//
// Shows: policies/undo-restart
func TestWhoReturnsFromWhatItFailedWith(t *testing.T) {
	cfg := fixture.Template("t")
	ago := func(d time.Duration) time.Time { return fixture.Noon().Add(-d) }
	spec := func(action policies.Action, after time.Duration) policies.AddOnPolicySpec {
		return policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: action, After: metav1.Duration{Duration: after}}}
	}
	retried, held := spec(policies.ActionUndo, 0), spec(policies.ActionUndo, 0)
	retried.Retry, held.Paused = []string{nameOf(cfg, "new")}, &policies.Pause{Reason: "someone looks"}
	returned := fixture.With(fixture.AddOn("a", fixture.Has(cfg, "old")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", ago(time.Minute)),
		failedAt("Undone", cfg, ago(time.Minute)))
	for sentence, tc := range map[string]struct {
		a     *addonv1beta1.ManagedClusterAddOn
		spec  policies.AddOnPolicySpec
		undo  bool
		why   string
		wake  time.Time
		state string
	}{
		"it failed": {
			a: broken(cfg, ago(time.Minute)), spec: spec(policies.ActionUndo, 0), undo: true, state: "1 failed",
		},
		"it failed, and the policy stops": {
			a: broken(cfg, ago(time.Minute)), spec: spec(policies.ActionStop, 0), state: "1 failed",
		},
		"it failed too short a time ago": {
			a: broken(cfg, ago(time.Minute)), spec: spec(policies.ActionUndo, time.Hour), state: "1 failed",
			why: "it returns at 2030-01-01T12:59:00Z", wake: fixture.Noon().Add(59 * time.Minute),
		},
		"it failed long enough ago": {
			a: broken(cfg, ago(time.Hour)), spec: spec(policies.ActionUndo, time.Hour), undo: true, state: "1 failed",
		},
		"it failed with what is tried again": {a: broken(cfg, ago(time.Minute)), spec: retried, state: "1 failed"},
		"the add-on is paused": {
			a: broken(cfg, ago(time.Minute)), spec: held, why: "AddOnPolicy hello is paused: someone looks", state: "1 failed",
		},
		"it returned, and counts as failed further on": {
			a: returned, spec: spec(policies.ActionUndo, 0), undo: true, state: "1 failed",
		},
		"it returned, and the policy stops from now on": {
			a: returned, spec: spec(policies.ActionStop, 0), undo: true, state: "1 failed",
		},
		"it returned, and is tried again": {a: returned, spec: retried, state: "0 failed"},
		"all of the placement return, so it is none of its own": {
			a: broken(cfg, ago(time.Minute)), spec: policies.AddOnPolicySpec{Undo: []string{nameOf(cfg, "new")}},
			state: "0 failed",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f, _ := underPolicy(cfg, tc.spec, tc.a, fixture.AddOn("b", fixture.Has(cfg, "old")))
			p := decide(f)
			assert.Equal(t, tc.undo, p.admissions["a"].undo)
			assert.Equal(t, tc.why, p.admissions["a"].notUndone)
			assert.Equal(t, tc.wake, p.wake)
			after := conclude(f, p)
			said := meta.FindStatusCondition(after.Status.InstallProgressions[0].Conditions, "Progressing").Message
			assert.Contains(t, said, tc.state)
			f.admitted, f.ways = p.admissions, p.ways
			again := decide(f)
			assert.Equal(t, p.admissions, again.admissions, "the next plan says the same")
		})
	}
}

// Shows: policies/undo-all
func TestWhenAllClustersOfAPlacementReturn(t *testing.T) {
	cfg := fixture.Template("t")
	since := fixture.Noon().Add(-time.Minute)
	all := func(after time.Duration) policies.AddOnPolicySpec {
		return policies.AddOnPolicySpec{
			OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: after}},
		}
	}
	second := nameOf(cfg, "new")
	f, policy := underPolicy(cfg, all(0), broken(cfg, since), fixture.AddOn("b", fixture.Has(cfg, "old")))
	p := decide(f)
	assert.False(t, p.admissions["a"].undo, "it is written first")
	assert.True(t, p.admissions["a"].isAbout("", addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "new")})))
	policy.Status = statusOf(f, p)
	require.Len(t, policy.Status.Undone, 1)
	assert.Equal(t, policies.Undone{
		Content: second, Configurations: []string{"addontemplates.addon.open-cluster-management.io//t"},
		Since: metav1.NewTime(fixture.Noon()), Why: "1 of 2 clusters of the placement failed or timed out (a)",
		By: policies.ByPolicy, Action: policies.ActionUndoAll, Placements: []string{"ns/p"},
	}, policy.Status.Undone[0])

	p = decide(f) // The status says it, to this process or to another one.
	old := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "old")})
	assert.True(t, p.admissions["a"].granted && p.admissions["a"].isAbout("", old))
	assert.True(t, p.admissions["b"].granted && p.admissions["b"].isAbout("", old))
	after := statusOf(f, p)
	assert.EqualValues(t, 2, after.Undone[0].Clusters)
	assert.Equal(t, []policies.CompletedContent{completed(cfg, "old")}, after.Placements[0].Completed)
	assert.Contains(t, conclude(f, p).Status.InstallProgressions[0].Conditions[0].Message,
		"content "+second+" was undone, and its clusters return to what completed before")

	f.lacks = map[string]string{"ns/p": "the content is not stored any more"}
	p = decide(f)
	assert.True(t, p.admissions["a"].granted)
	assert.False(t, p.admissions["b"].granted)
	assert.Contains(t, p.admissions["b"].reason, "content "+second+" was undone, and the content is not stored any more")
	assert.Contains(t, statusOf(f, p).Placements[0].Problem, "keep what they have: the content is not stored any more")

	policy.Spec.Retry, f.lacks = []string{second}, nil
	p = decide(f)
	assert.Empty(t, statusOf(f, p).Undone, "it is tried again, and only stops")
	assert.Contains(t, p.placements[0].Stopped, "1 of 2")

	f, _ = underPolicy(cfg, all(time.Hour), broken(cfg, since), fixture.AddOn("b", fixture.Has(cfg, "old")))
	p = decide(f)
	assert.Empty(t, statusOf(f, p).Undone)
	assert.Equal(t, since.Add(time.Hour), p.wake)
}

func TestAPolicySaysWhyAllClustersDoNotReturn(t *testing.T) {
	cfg := fixture.Template("t")
	spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}}
	a, b := broken(cfg, fixture.Noon().Add(-time.Minute)), fixture.AddOn("b", fixture.Has(cfg, "old"))
	f, policy := underPolicy(cfg, spec, a, b)
	policy.Status.Placements = nil
	status := statusOf(f, decide(f))
	assert.Equal(t, "content "+nameOf(cfg, "new")+" is not undone: no content completed before it", status.Placements[0].Problem)
	assert.Empty(t, status.Undone)

	// A person may undo it nevertheless: who does not have it waits.
	f, policy = underPolicy(cfg, policies.AddOnPolicySpec{Undo: []string{nameOf(cfg, "new")}}, a, fixture.AddOn("b"))
	policy.Status.Placements = nil
	assert.Contains(t, decide(f).admissions["b"].reason,
		"content "+nameOf(cfg, "new")+" was undone, and no content completed before it")

	f, _ = underPolicy(cfg, spec, a, b)
	f.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{}
	status = statusOf(f, decide(f))
	assert.Contains(t, status.Placements[0].Problem, "strategy All tolerates all failures")
}

func TestWhatAPolicyRemembersOfContents(t *testing.T) {
	cfg := fixture.Template("t")
	has := func(cluster, hash string) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(cluster, fixture.Has(cfg, hash)),
			fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour)))
	}
	undone := policies.Undone{
		Content: "bad", By: policies.ByPolicy, Action: policies.ActionUndo, Placements: []string{"ns/p"},
	}
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{}, has("a", "new"), has("b", "new"))
	policy.Status.Undone = []policies.Undone{undone}
	policy.Status.Placements[0].Completed = append(policy.Status.Placements[0].Completed, completed(cfg, "older"), completed(cfg, "oldest"))
	policy.Status = statusOf(f, decide(f))
	assert.Equal(t, []policies.CompletedContent{completed(cfg, "new"), completed(cfg, "old"), completed(cfg, "older")},
		policy.Status.Placements[0].Completed, "the last ones")
	assert.Empty(t, policy.Status.Undone, "a new content completed, so that the tries begin again")
	assert.Equal(t, policy.Status, statusOf(f, decide(f)), "and nothing is written again")
	assert.Len(t, f.completed(), 3, "they stay stored")

	f, policy = underPolicy(cfg, policies.AddOnPolicySpec{}, has("a", "old"), has("b", "old"))
	f.states[cfg] = addonconfig.State{Hash: "old"}
	policy.Status.Undone = []policies.Undone{undone}
	status := statusOf(f, decide(f))
	assert.Len(t, status.Undone, 1, "a person who takes a content back has proved nothing new")

	f, policy = underPolicy(cfg, policies.AddOnPolicySpec{}, has("a", "new"), has("b", "old"))
	policy.Status.Undone = []policies.Undone{undone}
	status = statusOf(f, decide(f))
	assert.Len(t, status.Undone, 1)
	assert.Equal(t, []policies.CompletedContent{completed(cfg, "old")}, status.Placements[0].Completed)
}

func TestAnAddOnWithoutAPolicyIsNotUndone(t *testing.T) {
	cfg := fixture.Template("t")
	f := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{}, broken(cfg, fixture.Noon().Add(-time.Minute)),
		fixture.AddOn("b", fixture.Has(cfg, "old")))
	p := decide(f)
	assert.Equal(t, []*undoing{nil}, p.undoings)
	assert.False(t, p.admissions["a"].undo)

	returned := fixture.With(fixture.AddOn("a", fixture.Has(cfg, "old")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon()),
		failedAt("Undone", cfg, fixture.Noon()))
	f = oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{}, returned, fixture.With(fixture.AddOn("b", fixture.Has(cfg, "old")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon())))
	assert.True(t, decide(f).admissions["a"].granted, "the policy is gone, and with it what it held")
}
