package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

func (r *ruled) desires(hash string) []addonv1beta1.ConfigReference {
	return []addonv1beta1.ConfigReference{fixture.Desires(r.tmpl, hash)}
}

func (r *ruled) nameOf(hash string) string {
	return gate.ContentName("hello", addonconfig.Fingerprint(r.desires(hash)))
}

// "bad" failed on one of three clusters and was undone there, which the strategy tolerates, and completed on the others.
// Then v2 is asked for, and a person undoes it before it completes.
//
// Shows: policies/undo-here
func TestAReturnOfAllGivesNoClusterWhatItReturnedFromItself(t *testing.T) {
	r := newRuled(undoSpec())
	r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromString("50%")
	r.rolls("v1")
	r.passes(120)
	r.rolls("bad")
	r.breaks["a"] = "bad"
	r.passes(120)
	require.Equal(t, "v1", r.hash(r.a, r.tmpl), "it returned")
	require.Equal(t, "bad", r.hash(r.b, r.tmpl), "others are well with it")
	r.policy.Status.Undone[0].Placements = []string{"ns/p"} // As where it had failed on more, so that it is not forgotten.
	r.rolls("v2")
	r.passes(4)
	noted := meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed)
	require.Contains(t, noted.Message, r.nameOf("bad"), "the cluster remembers")
	require.Len(t, r.policy.Status.Undone, 1, "and so does the policy")
	r.policy.Spec.Undo = []string{r.nameOf("v2")}
	assert.False(t, r.everBad(r.ofA, 60))
	assert.Equal(t, "v1", r.hash(r.a, r.tmpl))
	assert.Equal(t, "bad", r.hash(r.b, r.tmpl))
}

// A cluster fails with v2, which was applied there last, so that it returns to what completed for its placement.
//
// Shows: policies/undo-here
func TestAFailedClusterReturnsToWhatWasNotUndoneOnIt(t *testing.T) {
	tmpl, r := fixture.Template("t"), newRuled(undoSpec())
	done := func(hash string) policies.CompletedContent {
		return gate.CompletedContent(r.nameOf(hash), addonconfig.ChosenBy(r.desires(hash)))
	}
	undone := policies.Undone{Content: r.nameOf("bad"), By: policies.ByPolicy, Action: policies.ActionUndo}
	for sentence, tc := range map[string]struct {
		completed []policies.CompletedContent
		undone    []policies.Undone
		noted     []string
		to, kept  string
	}{
		"to the last one": {completed: []policies.CompletedContent{done("bad"), done("v1")}, to: "bad"},
		"undone on another cluster": {
			completed: []policies.CompletedContent{done("bad"), done("v1")}, undone: []policies.Undone{undone}, to: "bad",
		},
		"undone here": {
			completed: []policies.CompletedContent{done("bad"), done("v1")}, undone: []policies.Undone{undone},
			noted: []string{r.nameOf("bad")}, to: "v1",
		},
		"what its agent says is not in the policy": {
			completed: []policies.CompletedContent{done("bad"), done("v1")}, noted: []string{r.nameOf("bad")}, to: "bad",
		},
		"nothing else completed": {
			completed: []policies.CompletedContent{done("bad")}, undone: []policies.Undone{undone},
			noted: []string{r.nameOf("bad")}, kept: "what completed before it was undone on this cluster",
		},
		"nothing completed": {kept: "no content completed before it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: undoSpec()}
			policy.Status.Undone = tc.undone
			policy.Status.Placements = []policies.PlacementContents{{Placement: "ns/p", Completed: tc.completed}}
			noted := fixture.Condition(names.ConditionRolloutFailed, metav1.ConditionTrue, addonconfig.ReasonFailed, fixture.Noon())
			noted.Message = "it failed" + addonconfig.NoteUndone(tc.noted) + "; the rollout gave " +
				addonconfig.ContentsOf(r.desires("v2")).String()
			addOn := fixture.With(fixture.AddOn("a", fixture.Has(tmpl, "v2")),
				fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", fixture.Noon()), noted)
			f := facts{addOn: addOn, cma: r.cma, states: addonconfig.States{tmpl: {Hash: "v2"}},
				rules: gate.New("hello", policy, nil), planned: true, admission: addonconfig.Admission{
					Granted: true, Undo: true, Way: addonconfig.Way{
						Stage: addonconfig.ReasonFailed, Progress: fixture.Noon().Unix(),
					},
				}}
			how, is := f.failedReturns()
			require.True(t, is)
			f.returns(how)
			assert.Equal(t, tc.kept, f.undo.kept)
			if tc.to != "" {
				require.True(t, f.undo.active)
				assert.Equal(t, tc.to, f.undo.to[0].SpecHash)
			}
		})
	}
}
