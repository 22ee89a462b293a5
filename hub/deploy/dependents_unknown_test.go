package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
			needed, err := r.isNeeded(t.Context(), r.Client, addOn, nil)
			require.NoError(t, err)
			assert.True(t, needed, "its agent keeps its roles")
		})
	}
}
