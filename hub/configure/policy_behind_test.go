package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// live is the API server, which has a policy that the cache does not have yet.
type live struct {
	client.Reader
	policy *policies.AddOnPolicy
}

func (l live) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	all, is := into.(*policies.AddOnPolicyList)
	if !is {
		return l.Reader.List(ctx, into, options...)
	}
	all.Items = []policies.AddOnPolicy{*l.policy.DeepCopy()}
	return nil
}

// A cache is behind, as after a restart whose list came from an API server that is behind: the policy is asked for before
// an add-on gets another content.
func TestACacheThatIsBehindPassesNoPause(t *testing.T) {
	s := newSelected(t, "low", nil) // it is to have "default"
	was := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "p", Generation: 1}}
	is := was.DeepCopy()
	is.Generation, is.Spec.Paused = 2, &policies.Pause{Reason: "incident 7"}
	s.c.Gates = &gate.Reader{Client: &ruling{policy: was}, AddOns: s.c.AddOns}
	s.c.Store.Live = live{s.c.Client, is}
	_, err := s.c.Configure(t.Context(), s.addOn)
	require.True(t, reconcile.IsLostRace(err), "%v", err)
	s.c.Gates.Client = &ruling{policy: is}
	result, err := s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err)
	assert.ErrorContains(t, result.Err, "incident 7")
}

// ruledBy has the policies of a cache and of the API server govern s, whose placement asks for "low", and which has
// completed "default" before.
func (s *selected) ruledBy(t *testing.T, low []addonv1beta1.ConfigReference, cached, served *policies.AddOnPolicy) {
	t.Helper()
	def := fixture.DeploymentConfig("default")
	states, err := s.c.Store.States(t.Context(), def)
	require.NoError(t, err)
	for _, p := range []*policies.AddOnPolicy{cached, served} {
		p.Name, p.UID = "hello", "p"
		p.Status.Placements = []policies.PlacementContents{{
			Placement: "ns/low", Content: gate.ContentName("hello", addonconfig.Fingerprint(low)),
			Completed: []policies.CompletedContent{gate.CompletedContent("d", addonconfig.ChosenBy(
				[]addonv1beta1.ConfigReference{fixture.Desires(def, states[def].Hash)},
			))},
		}}
	}
	s.c.Gates = &gate.Reader{Client: &ruling{policy: cached}, AddOns: s.c.AddOns}
	s.c.Store.Live = live{s.c.Client, served}
}

// The policy undid "low" for all clusters and says so in its status, which moves no generation; they returned. The cache of
// the hub manager that takes over has the policy as it was before.
//
// Shows: policies/undo-confirmed
func TestACacheThatIsBehindGivesNothingAgainThatThePolicyUndid(t *testing.T) {
	s, low := progressive(t)
	def := fixture.DeploymentConfig("default")
	states, err := s.c.Store.States(t.Context(), def)
	require.NoError(t, err)
	s.addOn = fixture.With(fixture.AddOn("c1", fixture.Has(def, states[def].Hash)), fixture.IsTrue("Configured"))
	was := &policies.AddOnPolicy{Spec: policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}}}
	is := was.DeepCopy()
	is.Status.Undone = []policies.Undone{{
		Content: gate.ContentName("hello", addonconfig.Fingerprint(low)), By: policies.ByPolicy,
		Action: policies.ActionUndoAll, Placements: []string{"ns/low"},
	}}
	s.c.Admission = func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
		return addonconfig.Admission{Granted: true}
	}
	s.ruledBy(t, low, was, is)
	_, err = s.c.Configure(t.Context(), s.addOn)
	require.True(t, reconcile.IsLostRace(err), "%v", err)
	s.c.Gates.Client = &ruling{policy: is}
	configs, said, _ := s.pass(t)
	assert.Equal(t, []string{"default"}, configs, said)
}

// A cluster failed with "low" and is about to return; a person paused the add-on to look at it, which the cache does not
// have. It has "low", so that only its return is another content.
//
// Shows: policies/undo-confirmed
func TestACacheThatIsBehindReturnsNoClusterWhileAPersonPauses(t *testing.T) {
	for sentence, paused := range map[string]bool{"control: the cache is not behind": false, "paused": true} {
		t.Run(sentence, func(t *testing.T) {
			s, low := progressive(t)
			fixture.With(s.addOn, fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", fixture.Noon()))
			was := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: undoSpec()}
			is := was.DeepCopy()
			if paused {
				is.Generation, is.Spec.Paused = 2, &policies.Pause{Reason: "incident 7"}
			}
			s.c.Admission = func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
				return addonconfig.Admission{Granted: true, Undo: true, Way: addonconfig.Way{
					Stage: addonconfig.ReasonFailed, Progress: fixture.Noon().Unix(),
				}}
			}
			s.ruledBy(t, low, was, is)
			result, err := s.c.Configure(t.Context(), s.addOn)
			if paused {
				require.True(t, reconcile.IsLostRace(err), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "default", result.Choice.Configs[0].Name)
		})
	}
}

// refusing is an API server that does not let policies be listed any more, or does not serve them.
type refusing struct {
	client.Reader
	err error
}

func (r refusing) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if _, is := into.(*policies.AddOnPolicyList); is {
		return r.err
	}
	return r.Reader.List(ctx, into, options...)
}

// none is a cache without policies and windows.
type none struct{ client.Reader }

func (none) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}
func (none) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// The definition of the kind is deleted, or the ClusterRole of an earlier version applied, while the hub manager runs.
//
// Shows: policies/policy-unserved
func TestAHubThatDoesNotServePoliciesAnyMoreHoldsNoAddOnInSilence(t *testing.T) {
	kind := schema.GroupResource{Group: "addon.spokelet.io", Resource: "addonpolicies"}
	paused := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: policies.AddOnPolicySpec{
		Paused: &policies.Pause{Reason: "incident 7"},
	}}
	for sentence, refused := range map[string]error{
		"the kind is deleted": apierrors.NewNotFound(kind, ""),
		"no match":            &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: kind.Group, Kind: "AddOnPolicy"}},
		"forbidden":           apierrors.NewForbidden(kind, "", nil),
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSelected(t, "low", nil) // it is to have "default"
			s.c.Store.Live = refusing{s.c.Client, refused}
			s.c.Gates = &gate.Reader{Client: &ruling{policy: paused}, AddOns: s.c.AddOns} // The cache does not know it.
			result, err := s.c.Configure(t.Context(), s.addOn)
			require.NoError(t, err)
			require.ErrorContains(t, result.Err, "incident 7")
			s.c.Gates = &gate.Reader{Client: none{}, AddOns: s.c.AddOns}
			result, err = s.c.Configure(t.Context(), s.addOn)
			require.NoError(t, err)
			require.Equal(t, "default", result.Choice.Configs[0].Name)
		})
	}
}
