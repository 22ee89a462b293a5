package configure

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// A reconciler that asks what an add-on may have, such as that of approvals, writes nothing.
//
// Shows: hub/reading-stores-nothing
func TestWhoOnlyReadsAConfigurationStoresNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	own := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(own, definition).Build()
	c := &Configurer{
		AddOns: addonapi.Client{Client: reader}, Client: reader, Store: &addonconfig.Store{Client: reader, Home: "home"},
	}
	config := fixture.DeploymentConfig("own")
	states, err := c.Store.States(t.Context(), config)
	require.NoError(t, err)
	addOn := fixture.AddOn("c1", fixture.Has(config, states[config].Hash))
	addOn.Spec.Configs = []addonv1beta1.AddOnConfig{config}
	stored := func() int {
		var all appsv1.ControllerRevisionList
		require.NoError(t, reader.List(t.Context(), &all))
		return len(all.Items)
	}
	read, err := c.Reading().Configure(t.Context(), addOn)
	require.NoError(t, err)
	assert.Zero(t, stored())
	written, err := c.Configure(t.Context(), addOn)
	require.NoError(t, err)
	assert.Equal(t, 1, stored())
	require.Len(t, read.Choice.Configs, 1)
	assert.Equal(t, written.Choice.Configs[0].ConfigSpecHash, read.Choice.Configs[0].ConfigSpecHash)
}

// Shows: hub/own-configuration-stored
func TestADeletedAddOnKeepsTheContentOfItsOwnConfiguration(t *testing.T) {
	own := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	for sentence, tc := range map[string]struct {
		first bool
		gone  []client.Object
	}{
		"its ClusterManagementAddOn is gone":                              {true, []client.Object{definition.DeepCopy()}},
		"its ClusterManagementAddOn is gone, and it was never stored":     {false, []client.Object{definition.DeepCopy()}},
		"its configuration is deleted with it":                            {true, []client.Object{own.DeepCopy()}},
		"its configuration and its ClusterManagementAddOn, as by a prune": {true, []client.Object{own.DeepCopy(), definition.DeepCopy()}},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			require.NoError(t, addonv1beta1.Install(scheme))
			require.NoError(t, appsv1.AddToScheme(scheme))
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(own.DeepCopy(), definition.DeepCopy()).Build()
			c := &Configurer{
				AddOns: addonapi.Client{Client: reader}, Client: reader, Store: &addonconfig.Store{Client: reader, Home: "home"},
			}
			config := fixture.DeploymentConfig("own")
			states, err := c.Store.States(t.Context(), config)
			require.NoError(t, err)
			require.NotEmpty(t, states[config].Hash)
			addOn := fixture.AddOn("c1", fixture.Has(config, states[config].Hash))
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{config}
			if tc.first {
				_, err := c.Configure(t.Context(), addOn)
				require.NoError(t, err)
			}
			for _, object := range tc.gone {
				require.NoError(t, reader.Delete(t.Context(), object))
			}
			addOn.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
			result, err := c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.NoError(t, result.Err)
			require.Len(t, result.Choice.Configs, 1)
			assert.NotNil(t, result.Choice.Configs[0].Object, "its pre-delete hooks can be rendered")
		})
	}
}

// Shows: hub/stored-again
func TestAnAddOnThatRunsWithAStoredContentStoresItAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	own := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}}
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	config := fixture.DeploymentConfig("own")
	for sentence, tc := range map[string]struct {
		says string // what the stored content says of itself instead
		has  string
		want []ctrl.Request
	}{
		"one add-on that has it, of many":       {want: []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: "c2", Name: "hello"}}}},
		"none when no add-on has it any more":   {has: "other"},
		"none for what is not a stored content": {says: "other"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(own.DeepCopy(), definition.DeepCopy()).
				WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
				Build()
			c := &Configurer{
				AddOns: addonapi.Client{Client: reader, Wire: addonapi.WireBeta}, Client: reader,
				Store: &addonconfig.Store{Client: reader, Home: "home"},
			}
			states, err := c.Store.States(t.Context(), config)
			require.NoError(t, err)
			addOn := fixture.AddOn("c1", fixture.Has(config, states[config].Hash))
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{config}
			_, err = c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			var stored appsv1.ControllerRevisionList
			require.NoError(t, reader.List(t.Context(), &stored))
			require.Len(t, stored.Items, 1)
			for _, cluster := range []string{"c2", "c3"} {
				another := fixture.AddOn(cluster, fixture.Has(config, cmp.Or(tc.has, states[config].Hash)))
				require.NoError(t, reader.Create(t.Context(), another))
			}
			if tc.says != "" {
				stored.Items[0].Annotations = map[string]string{names.AnnotationConfigKey: tc.says}
			}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer q.ShutDown()
			c.storesAgain(t.Context(), event.DeleteEvent{Object: &stored.Items[0]}, q)
			var asked []ctrl.Request
			for q.Len() > 0 {
				request, _ := q.Get()
				asked = append(asked, request)
			}
			assert.Equal(t, tc.want, asked)
			// No pass has seen it in the cache since it was stored.
			require.NoError(t, reader.Delete(t.Context(), &stored.Items[0]))
			_, err = c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.NoError(t, reader.List(t.Context(), &stored))
			assert.Len(t, stored.Items, 1, "it is stored again")
		})
	}
}
