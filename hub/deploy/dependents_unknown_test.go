package deploy

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// undecodable is a hub where a policy cannot be decoded.
type undecodable struct{ client.Reader }

func (undecodable) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if _, is := list.(*policies.AddOnPolicyList); is {
		return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
	}
	return nil
}

// depending is a hub where add-on b depends on a.
type depending struct{ client.Reader }

func (depending) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if all, is := list.(*policies.AddOnPolicyList); is {
		p := policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		p.Spec.DependsOn = []policies.Dependency{{Name: "a"}}
		all.Items = []policies.AddOnPolicy{p}
	}
	return nil
}

// What is not known deletes nothing, and says so.
func TestAnAddOnThatGoesSaysWhyItIsNotKnownWhatDependsOnIt(t *testing.T) {
	for sentence, gates := range map[string]func(*Reconciler) *gate.Reader{
		"another one depends on it":  func(r *Reconciler) *gate.Reader { return &gate.Reader{Client: depending{}, AddOns: r.AddOns} },
		"a policy cannot be decoded": func(r *Reconciler) *gate.Reader { return &gate.Reader{Client: undecodable{}, AddOns: r.AddOns} },
	} {
		t.Run(sentence, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp = new(metav1.NewTime(metav1.Unix(990, 0).Time))
			leaving.Finalizers = []string{names.FinalizerDependents}
			beside := addOnAt("c1")
			beside.Name, beside.UID = "b", "b"
			r := formerWorld(t, interceptor.Funcs{}, leaving, beside, ownNamespace("c1"), &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			})
			r.Gates = gates(r)
			for range 3 {
				_, _ = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			}
			addOn, err := r.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"})
			require.NoError(t, err)
			assert.NotEmpty(t, addOn.Status.Conditions, "it waits for ever, and nothing on it says so")
			needed, err := r.isNeeded(t.Context(), r.cached(), addOn, nil)
			require.NoError(t, err)
			assert.True(t, needed, "its agent keeps its roles")
		})
	}
}

// ruledBy is a hub whose lists of policies are those of another reader.
type ruledBy struct {
	client.Reader
	policies client.Reader
}

func (l ruledBy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, is := list.(*policies.AddOnPolicyList); is {
		return l.policies.List(ctx, list, opts...)
	}
	return l.Reader.List(ctx, list, opts...)
}

// nothing lists nothing.
type nothing struct{ client.Reader }

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// A hub manager that starts may find an API server that is behind, whose list has no policy yet. The API server decides.
//
// Shows: policies/depends-behind
func TestACacheOfPoliciesThatIsBehindLetsNoDependencyGo(t *testing.T) {
	for sentence, tc := range map[string]struct {
		cache, live client.Reader
		deleting    bool
		want        bool
	}{
		"the cache has the policy":                                   {depending{}, depending{}, true, true},
		"the cache is behind":                                        {nothing{}, depending{}, true, true},
		"the cache is behind, and nobody deletes the add-on":         {nothing{}, depending{}, false, true},
		"there is no policy":                                         {nothing{}, nothing{}, true, false},
		"there is no policy any more, and nobody deletes the add-on": {nothing{}, nothing{}, false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn, beside := addOnAt("c1"), addOnAt("c1")
			addOn.Finalizers = []string{names.FinalizerDependents, "example.com/stays"}
			if tc.deleting {
				addOn.DeletionTimestamp = new(metav1.NewTime(metav1.Unix(990, 0).Time))
			}
			beside.Name, beside.UID = "b", "b"
			r := formerWorld(t, interceptor.Funcs{}, addOn, beside, ownNamespace("c1"), &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			})
			r.Gates = &gate.Reader{Client: tc.cache, AddOns: r.AddOns}
			r.Live = ruledBy{r.Live, tc.live}
			for range 3 {
				_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
				require.NoError(t, err)
			}
			after, err := r.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"})
			require.NoError(t, err)
			assert.Equal(t, tc.want, slices.Contains(after.Finalizers, names.FinalizerDependents))
		})
	}
}

// The administrator of another namespace writes a work there that passes for one of an add-on that is gone, and keeps it
// by a finalizer of his own.
//
// Shows: security/forged-hosted-works
func TestAForgedWorkStopsNoDeletionOfWhatOthersDependOn(t *testing.T) {
	for sentence, tc := range map[string]struct {
		rules hosting.Rules
		list  string
		want  int
	}{
		"on a cluster that consents":                            {hosting.Rules{RequireConsent: true}, "c1", 1},
		"on one that does not":                                  {hosting.Rules{RequireConsent: true}, "", 0},
		"on one that consents to others":                        {hosting.Rules{}, "c2", 0},
		"on one without a list, where policies keep others off": {hosting.Rules{}, "", 1},
	} {
		now := metav1.Unix(990, 0)
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "evil", Name: "addon-b-deploy-hosting-c1-0", DeletionTimestamp: &now, Finalizers: []string{"example.com/stays"},
			Labels: map[string]string{names.LabelAddonNamespace: "c1", names.LabelAddonName: "b"},
		}}
		host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}
		if tc.list != "" {
			host.Annotations = map[string]string{names.AnnotationHosts: tc.list}
		}
		nowhere := work.DeepCopy()
		nowhere.Namespace = "nowhere"
		r := formerWorld(t, interceptor.Funcs{}, work, nowhere, host)
		r.Hosting = tc.rules
		left, err := r.leftWorks(t.Context(), r.Client, types.NamespacedName{Namespace: "c1", Name: "b"})
		require.NoError(t, err, sentence)
		assert.Equal(t, tc.want, left, sentence)
	}
}
