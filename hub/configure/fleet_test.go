package configure

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
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
		_, desired, err := c.named(t.Context(), "hello", confighash.Template())
		require.NoError(t, err)
		require.Len(t, desired, 1, "a cluster still runs with it")
		require.NoError(t, reader.Delete(t.Context(), objects[n]))
		notes.Delete(t.Context(), event.DeleteEvent{Object: objects[n]}, nil)
	}
	_, desired, err := c.named(t.Context(), "hello", confighash.Template())
	require.NoError(t, err)
	assert.Empty(t, desired)
	assert.LessOrEqual(t, read, 3*clusters, "reads are in proportion to the add-ons, not to their square")
	assert.Empty(t, c.uses.all, "nothing is remembered of what is gone")
}

// stored is a hub without ClusterManagementAddOns, where all contents are stored.
type stored struct {
	client.Client
	addOns []addonv1alpha1.ManagedClusterAddOn
}

func (s stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	addOns, ok := list.(*addonv1alpha1.ManagedClusterAddOnList)
	if !ok {
		return fmt.Errorf("%T is not stored", list)
	}
	addOns.Items = s.addOns
	return nil
}

func (s stored) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	revision, isRevision := o.(*appsv1.ControllerRevision)
	if !isRevision {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	revision.UID, revision.Data.Raw = types.UID(key.Name), []byte(`{"apiVersion": "v1", "kind": "Any"}`)
	return nil
}

// Shows: hub/deletion-linear
func TestAQuestionAboutAFleetCostsWhatItAsksFor(t *testing.T) {
	template, kind := fixture.Template("hello"), confighash.Template()
	work := func(clusters int) (runs, named float64) {
		s := stored{addOns: make([]addonv1alpha1.ManagedClusterAddOn, clusters)}
		for n := range s.addOns {
			addOn := fixture.AddOn(fmt.Sprintf("c%d", n), fixture.Has(template, "1"),
				fixture.Has(fixture.DeploymentConfig(fmt.Sprintf("own%d", n)), "1"))
			require.NoError(t, addonv1beta1.Convert_v1beta1_ManagedClusterAddOn_To_v1alpha1_ManagedClusterAddOn(addOn, &s.addOns[n], nil))
		}
		c := &Configurer{AddOns: addonapi.Client{Client: s}, Client: s, Store: &addonconfig.Store{Client: s, Home: "home"}}
		c.notesAddOns()
		runs = testing.AllocsPerRun(10, func() {
			found, err := c.Runs(t.Context(), "hello", kind)
			require.NoError(t, err)
			require.True(t, found)
		})
		return runs, testing.AllocsPerRun(10, func() {
			configs, err := c.Named(t.Context(), "hello", kind)
			require.NoError(t, err)
			require.Len(t, configs, 1)
		})
	}
	runs, named := work(100)
	manyRuns, manyNamed := work(3000)
	assert.InDelta(t, runs, manyRuns, 2, "each of the add-ons that are deleted asks whether its agent is still known")
	assert.InDelta(t, named, manyNamed, 2, "each cluster has a configuration of its own, and nobody asked about those")
}
