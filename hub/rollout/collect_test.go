package rollout

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// hubOf is a hub with objects, which finds add-ons by their name.
func hubOf(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		Build()
}

// The add-ons of a deleted definition go one by one, and each starts a pass.
//
// Shows: hub/deletion-linear
func TestAPassWithoutADefinitionReadsTheAddOnsThatChanged(t *testing.T) {
	lists := 0
	c := hubOf(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, addOns := list.(*addonv1alpha1.ManagedClusterAddOnList); addOns {
				lists++
			}
			return c.List(ctx, list, options...)
		},
	}, &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	store := &addonconfig.Store{Client: c, Home: "home"}
	template := fixture.Template("one")
	states, err := store.States(t.Context(), template)
	require.NoError(t, err)
	content := addonconfig.Chosen{
		ConfigGroupResource: template.ConfigGroupResource, ConfigSpecHash: *fixture.Hashed(template, states[template].Hash),
	}
	require.NoError(t, store.Keep(t.Context(), "hello", content))
	all := make([]*addonv1alpha1.ManagedClusterAddOn, 3)
	for n := range all {
		all[n] = &addonv1alpha1.ManagedClusterAddOn{}
		addOn := fixture.AddOn(fmt.Sprintf("c%d", n), fixture.Has(template, states[template].Hash))
		require.NoError(t, addonv1beta1.Convert_v1beta1_ManagedClusterAddOn_To_v1alpha1_ManagedClusterAddOn(addOn, all[n], nil))
		all[n].Name = "hello"
		require.NoError(t, c.Create(t.Context(), all[n]))
	}
	r := &Reconciler{AddOns: addonapi.Client{Client: c}, Client: c, Store: store, Clock: clock.RealClock{}}
	stored := func() int {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
		require.NoError(t, err)
		revisions, err := store.Revisions(t.Context(), "hello")
		require.NoError(t, err)
		return len(revisions)
	}
	revisions, err := store.Revisions(t.Context(), "hello")
	require.NoError(t, err)
	require.Len(t, revisions, 1)
	require.NoError(t, c.Delete(t.Context(), revisions[0].DeepCopy()))
	store.Deleted(revisions[0])
	store.Lost(revisions[0].DeepCopy())
	assert.Equal(t, 1, stored(), "a user deleted it, and no add-on had a pass")
	for _, addOn := range all {
		assert.Equal(t, 1, stored(), "an add-on that is left may have a hook")
		require.NoError(t, c.Delete(t.Context(), addOn))
		r.members.Note(addOn)
	}
	assert.Equal(t, 1, lists, "only the first pass looks at all")
	assert.Zero(t, stored())
}
