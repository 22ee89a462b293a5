package configure

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// Shows: hub/deletion-linear
func TestWhatAFleetRunsWithCostsWhatChanged(t *testing.T) {
	const clusters = 50
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	objects := make([]client.Object, clusters)
	for n := range objects {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: fmt.Sprintf("c%02d", n)}}
		config := fixture.Template("old")
		addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource(config.ConfigGroupResource),
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{
				ConfigReferent: addonv1alpha1.ConfigReferent{Name: "old"}, SpecHash: "1",
			},
		}}
		objects[n] = addOn
	}
	read := 0
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, addOns := list.(*addonv1alpha1.ManagedClusterAddOnList); addOns {
				read += clusters
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, addOn := o.(*addonv1alpha1.ManagedClusterAddOn); addOn {
				read++
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	c := &Configurer{
		AddOns: addonapi.Client{Client: reader}, Client: reader, Store: &addonconfig.Store{Client: reader, Home: "home"},
	}
	notes := c.notesAddOns()
	for n := range objects {
		_, desired, err := c.named(t.Context(), "hello")
		require.NoError(t, err)
		require.Len(t, desired, 1, "a cluster still runs with it")
		require.NoError(t, reader.Delete(t.Context(), objects[n]))
		notes.Delete(t.Context(), event.DeleteEvent{Object: objects[n]}, nil)
	}
	_, desired, err := c.named(t.Context(), "hello")
	require.NoError(t, err)
	assert.Empty(t, desired)
	assert.LessOrEqual(t, read, 3*clusters, "reads are in proportion to the add-ons, not to their square")
	assert.Empty(t, c.fleets.all, "nothing is remembered of what is gone")
}
