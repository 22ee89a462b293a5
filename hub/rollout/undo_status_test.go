package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

var _ = planner.Result{}

func undoneByPolicy(content string, action policies.Action) policies.Undone {
	return policies.Undone{Content: content, By: policies.ByPolicy, Action: action, Placements: []string{"ns/p"},
		Since: metav1.NewTime(fixture.Noon().Add(-time.Hour)), Why: "1 of 2 clusters failed"}
}

// The policy undid a content for all clusters. A person adds it to spec.undo, too ("kubectl spokelet rollout undo"), and
// takes it out again later. "What was undone is not given to any cluster again, until retry has it": the policy undid it.
func TestWhatThePolicyUndidStaysUndoneWhenSpecUndoHasItForAWhile(t *testing.T) {
	cfg := fixture.Template("t")
	bad := nameOf(cfg, "new")
	spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}}
	well := func(cluster string) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(cluster, fixture.Has(cfg, "old")),
			fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour)))
	}
	f, policy := underPolicy(cfg, spec, well("a"), well("b"))
	policy.Status.Undone = []policies.Undone{undoneByPolicy(bad, policies.ActionUndoAll)}
	old := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "old")})
	require.True(t, decide(f).admissions["a"].isAbout("", old))

	policy.Spec.Undo = []string{bad}
	policy.Status = statusOf(f, decide(f))
	policy.Spec.Undo = nil
	policy.Status = statusOf(f, decide(f))
	p := decide(f)
	assert.True(t, p.admissions["a"].isAbout("", old), "a is given again what failed, and nobody said retry: %+v", p.admissions["a"])
	assert.NotEmpty(t, policy.Status.Undone)
}

// maxTries is reached, and approval is PerWave. status.contents names the wave, and "kubectl spokelet rollout approve"
// approves that; docs: "it ends by kubectl spokelet rollout approve".
func TestAnApprovalOfWhatThePolicyNamesEndsTheWaitAfterManyTries(t *testing.T) {
	cfg := fixture.Template("t")
	spec := policies.AddOnPolicySpec{
		Approval: policies.ApprovalPerWave, OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll, MaxTries: 1},
	}
	f, policy := underPolicy(cfg, spec, fixture.AddOn("a", fixture.Has(cfg, "old")), fixture.AddOn("b", fixture.Has(cfg, "old")))
	policy.Status.Undone = []policies.Undone{undoneByPolicy("another", policies.ActionUndoAll)}
	for range 3 {
		status := statusOf(f, decide(f))
		for _, c := range status.Contents {
			if !c.Approved {
				policy.Spec.Approved = append(policy.Spec.Approved, c.Name)
			}
		}
	}
	p := decide(f)
	assert.True(t, p.admissions["a"].granted, "all that status.contents names is approved, and it waits: %s", p.admissions["a"].reason)
}

// UndoAll is asked for, and the placement is beyond those that the status has room for: "says in the policy's status why
// not".
func TestAPlacementBeyondTheLimitSaysWhyItIsNotUndone(t *testing.T) {
	cfg := fixture.Template("t")
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}},
		broken(cfg, fixture.Noon().Add(-time.Minute)), fixture.AddOn("b", fixture.Has(cfg, "old")))
	policy.Status.Placements = nil
	last, decisions := f.cma.Spec.InstallStrategy.Placements[0], f.placements[0]
	empty := oneByOne(cfg, "new", clusterv1alpha1.RolloutConfig{}).placements[0]
	empty.Names = nil
	f.cma.Spec.InstallStrategy.Placements, f.placements = nil, nil
	for i := range policies.MaxPlacements {
		other := *last.DeepCopy()
		other.Name = fmt.Sprintf("other-%d", i)
		f.cma.Spec.InstallStrategy.Placements = append(f.cma.Spec.InstallStrategy.Placements, other)
		f.placements = append(f.placements, empty)
	}
	f.cma.Spec.InstallStrategy.Placements = append(f.cma.Spec.InstallStrategy.Placements, last)
	f.placements = append(f.placements, decisions)
	p := decide(f)
	require.NotEmpty(t, p.placements[policies.MaxPlacements].Failing)
	status := statusOf(f, p)
	said := status.Problem
	for _, placement := range status.Placements {
		said += placement.Problem
	}
	assert.NotEmpty(t, said, "nothing is undone, and nothing says why")
}

// onFailure is asked for an add-on that people install: nothing acts, and nothing says so.
func TestAPolicySaysThatItUndoesNothingOfAddOnsThatPeopleInstall(t *testing.T) {
	cfg := fixture.Template("t")
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndo}},
		broken(cfg, fixture.Noon().Add(-time.Minute)))
	policy.Status.Placements = nil
	f.cma = fixture.NewCMA([]addonv1beta1.AddOnConfig{cfg})
	f.placements = nil
	f.gate = gate.New("hello", policy, nil)
	status := statusOf(f, decide(f))
	require.Len(t, status.Placements, 1)
	assert.NotEmpty(t, status.Problem+status.Placements[0].Problem)
}

// A ClusterManagementAddOn is written before its template, as a person does who begins. "Completed" without any
// configuration is nothing that a failed first content could be replaced by: "where nothing completed before, clusters
// keep what they have, and say so".
func TestNoConfigurationsAreNothingThatCompleted(t *testing.T) {
	cfg := fixture.Template("t")
	f, policy := underPolicy(cfg, policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}},
		fixture.AddOn("a"), fixture.AddOn("b"))
	policy.Status = policies.AddOnPolicyStatus{}
	f.gate = gate.New("hello", policy, nil)
	configs := f.cma.Spec.InstallStrategy.Placements[0].Configs
	f.cma.Spec.InstallStrategy.Placements[0].Configs = nil
	policy.Status = statusOf(f, decide(f))

	f.cma.Spec.InstallStrategy.Placements[0].Configs = configs
	after, _ := underPolicy(cfg, policy.Spec, broken(cfg, fixture.Noon().Add(-time.Minute)), fixture.AddOn("b"))
	after.gate = gate.New("hello", policy, nil)
	policy.Status = statusOf(after, decide(after))
	assert.Empty(t, policy.Status.Undone, "the clusters return to no configuration at all")
	assert.Contains(t, policy.Status.Placements[0].Problem, "no content completed before it")
}
