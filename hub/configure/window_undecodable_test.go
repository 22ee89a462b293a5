package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// badWindow is a cache with a MaintenanceWindow that cannot be decoded, of whatever add-ons.
type badWindow struct{ client.Reader }

func (b badWindow) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if _, is := into.(*policies.MaintenanceWindowList); is {
		return &decode.Error{Bad: decode.Bad{Cause: "bad window"}}
	}
	return b.Reader.List(ctx, into, options...)
}

// windowed are the two hubs: with windows that are known, and with one that is not.
func windowed(cache client.Reader) map[string]client.Reader {
	return map[string]client.Reader{"control": cache, "a window that cannot be decoded": badWindow{cache}}
}

// A person undoes "low".
//
// Shows: policies/window-undecodable
func TestAWindowThatCannotBeDecodedHoldsNoReturn(t *testing.T) {
	s, low := progressive(t)
	policy := &policies.AddOnPolicy{Spec: policies.AddOnPolicySpec{
		Undo: []string{gate.ContentName("hello", addonconfig.Fingerprint(low))},
	}}
	s.c.Admission = func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
		return addonconfig.Admission{Granted: true}
	}
	s.ruledBy(t, low, policy, policy)
	for sentence, cache := range windowed(s.c.Gates.Client) {
		s.c.Gates.Client = cache
		result, err := s.c.Configure(t.Context(), s.addOn)
		require.NoError(t, err, sentence)
		assert.Equal(t, "default", result.Choice.Configs[0].Name, sentence)
	}
}

// A rollout counted the cluster as failed; now all get their content at once, and it is well.
//
// Shows: policies/window-undecodable
func TestAWindowThatCannotBeDecodedLeavesNoFailureOnAnAddOnThatIsWell(t *testing.T) {
	for sentence, cache := range windowed(none{}) {
		t.Run(sentence, func(t *testing.T) {
			p := placement("low", "c1")
			s := newSelected(t, "low", []string{"low"}, p.placement, p.page)
			noted := fixture.Condition(names.ConditionRolloutFailed, metav1.ConditionTrue, "Failed", fixture.Noon())
			noted.Message = "it failed; the rollout gave " + addonconfig.ContentsOf(s.addOn.Status.ConfigReferences).String()
			fixture.With(s.addOn, fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", fixture.Noon()), noted,
				fixture.IsTrue("ManifestApplied"))
			s.c.Gates = &gate.Reader{Client: cache, AddOns: s.c.AddOns}
			result, err := s.c.Configure(t.Context(), s.addOn)
			require.NoError(t, err)
			after := s.addOn.DeepCopy()
			result.Record(after, addon.Progress{
				Now: s.clock.Now(), Works: []*workv1.ManifestWork{fixture.Work("w", 3, after.Status.ConfigReferences)},
			})
			require.Equal(t, "Completed", meta.FindStatusCondition(after.Status.Conditions, "Progressing").Reason)
			assert.Nil(t, meta.FindStatusCondition(after.Status.Conditions, names.ConditionRolloutFailed))
		})
	}
}

// An add-on without a policy and without a rollout that decides about it is to have "default".
func TestAWindowThatCannotBeDecodedHoldsWhatIsToBegin(t *testing.T) {
	s := newSelected(t, "low", nil)
	s.c.Gates = &gate.Reader{Client: badWindow{none{}}, AddOns: s.c.AddOns}
	configs, said, _ := s.pass(t)
	assert.Equal(t, []string{"low"}, configs)
	assert.Contains(t, said, "waits for its turn in the rollout: ")
	assert.Contains(t, said, "cannot be decoded: bad window")
}
