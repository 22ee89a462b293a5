package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// A window that cannot be decoded holds what waits for windows, and nothing of an add-on that is gone does.
func TestAWindowThatCannotBeDecodedKeepsNoContentOfADeletedAddOn(t *testing.T) {
	c := hubOf(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, is := into.(*policies.AddOnPolicy); is {
				return nil
			}
			return c.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*policies.MaintenanceWindowList); is {
				return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
			}
			return c.List(ctx, list, options...)
		},
	}, &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	store := &addonconfig.Store{Client: c, Home: "home"}
	template := fixture.Template("one")
	states, err := store.States(t.Context(), template)
	require.NoError(t, err)
	require.NoError(t, store.Keep(t.Context(), "hello", addonconfig.Chosen{
		ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, states[template].Hash),
	}))
	r := &Reconciler{
		AddOns: addonapi.Client{Client: c}, Client: c, Store: store, Gates: &gate.Reader{Client: c},
		Clock: clocktesting.NewFakePassiveClock(fixture.Noon().AddDate(10, 0, 0)),
	}
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
	require.NoError(t, err)
	revisions, err := store.Revisions(t.Context(), "hello")
	require.NoError(t, err)
	assert.Empty(t, revisions)
}
