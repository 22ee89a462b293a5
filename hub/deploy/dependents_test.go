package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestWhichAddOnsHaveTheFinalizerForWhatDependsOnThem(t *testing.T) {
	with, without := []string{"example.com/x", names.FinalizerDependents}, []string{"example.com/x"}
	for sentence, tc := range map[string]struct {
		d          dependentFacts
		have, want []string
	}{
		"one on which another one depends":                     {dependentFacts{knows: true, any: true}, without, with},
		"it stays":                                             {dependentFacts{knows: true, any: true}, with, nil},
		"one on which none depends any more":                   {dependentFacts{knows: true}, with, without},
		"nothing changes where there is no policy":             {dependentFacts{knows: true}, without, nil},
		"a program that knows no policy leaves it as it is":    {dependentFacts{}, with, nil},
		"a program that knows no policy does not put it there": {dependentFacts{any: true}, without, nil},
	} {
		addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.have}}
		after := guardsDependents(addOn, tc.d)
		if tc.want == nil {
			assert.Nil(t, after, sentence)
		} else if assert.NotNil(t, after, sentence) {
			assert.Equal(t, tc.want, after.Finalizers, sentence)
		}
	}
}

// Shows: policies/depends-deletion
func TestWhatTheDeletionOfAnAddOnWaitsForOnWhichOthersDepend(t *testing.T) {
	for sentence, tc := range map[string]struct {
		d         dependentFacts
		condition string
		drops     bool
	}{
		"for those that are there": {
			d: dependentFacts{knows: true, any: true, there: []string{"a", "b"}},
			condition: "The add-on goes after those on its cluster that depend on it: a, b. Delete them, or take it out of " +
				"spec.dependsOn of their AddOnPolicies.",
		},
		"for nothing when none is there":      {d: dependentFacts{knows: true, any: true}, drops: true},
		"for nothing when no policy names it": {d: dependentFacts{knows: true}, drops: true},
		"for a hub manager that reads policies": {
			condition: "The add-on goes after those on its cluster that depend on it, and the hub manager reads no AddOnPolicies: " +
				"they are not served, or it may not list them. Its log says which. Mend that and restart it, or remove finalizer " +
				"addon.spokelet.io/dependents from the add-on if none is left.",
		},
	} {
		now := metav1.Unix(1000, 0)
		f := deletionFacts{ours: true, managed: true, dependents: tc.d, facts: facts{
			now: now.Time, addOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Namespace: "c1", Name: "a", DeletionTimestamp: &now,
				Finalizers: []string{finalizerHook, names.FinalizerDependents},
			}},
		}}
		p := decideDeletion(f)
		assert.Equal(t, !tc.drops, p.waits, sentence)
		if tc.drops {
			assert.Equal(t, []string{names.FinalizerDependents}, p.drop, "%s: the hook comes after that", sentence)
			continue
		}
		assert.Empty(t, p.drop, sentence)
		require.Len(t, p.conditions, 1, sentence)
		assert.Equal(t, tc.condition, p.conditions[0].Message, sentence)
		assert.Equal(t, "WaitingForDependents", p.conditions[0].Reason, sentence)
	}
}
