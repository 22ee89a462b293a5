package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A configuration is replaced (kubectl replace --force, or a tool that prunes and creates): its generation begins
// again. All clusters have the content of the new one. Then the hub manager starts with an API server that is behind
// and has the earlier one, which is of a later generation.
func TestAnEarlierConfigurationOfTheNameIsNotRolledOut(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	build := func(uid, value string, generation int64) client.WithWatch {
		own := &addonv1beta1.AddOnDeploymentConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: types.UID(uid), Generation: generation},
			Spec: addonv1beta1.AddOnDeploymentConfigSpec{
				CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "LEVEL", Value: value}},
			},
		}
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(own,
			&addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}).
			WithIndex(&addonv1beta1.AddOnDeploymentConfig{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
			WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
			Build()
	}
	config := fixture.DeploymentConfig("own")
	for sentence, tc := range map[string]struct {
		generation int64
	}{
		"control: the earlier one had a lower generation": {generation: 0},
		"the earlier one had a higher generation":         {generation: 3},
		"the earlier one had the same generation":         {generation: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			live, cache := build("present", "new", 1), build("earlier", "old", tc.generation)
			states, err := (&addonconfig.Store{Client: live}).States(t.Context(), config)
			require.NoError(t, err)
			addOn := fixture.AddOn("c1", fixture.Observed(fixture.Has(config, states[config].Hash), 1))
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{config}
			c := &Configurer{
				AddOns: addonapi.Client{Client: cache, Wire: addonapi.WireBeta}, Client: cache,
				Store: &addonconfig.Store{Client: cache, Live: live, Home: "home"},
			}
			result, err := c.Configure(t.Context(), addOn)
			if err != nil {
				t.Log("a lost race:", err)
				return
			}
			for _, chosen := range result.Choice.Configs {
				assert.Equal(t, states[config].Hash, chosen.SpecHash,
					"an earlier configuration of the name, which the API server does not have any more, is rolled out")
			}
		})
	}
}

// A hub manager starts with an API server that is behind: its ClusterManagementAddOn names the configuration of
// yesterday, without a planned rollout, while all clusters run with that of today.
//
// Shows: hub/definition-behind
func TestAnEarlierDefinitionRollsNothingBack(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	yesterday, today := fixture.DeploymentConfig("yesterday"), fixture.DeploymentConfig("today")
	definition := func(uid types.UID, generation int64, config addonv1beta1.AddOnConfig) *addonv1beta1.ClusterManagementAddOn {
		return &addonv1beta1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: uid, Generation: generation},
			Spec:       addonv1beta1.ClusterManagementAddOnSpec{DefaultConfigs: []addonv1beta1.AddOnConfig{config}},
		}
	}
	build := func(cma *addonv1beta1.ClusterManagementAddOn) client.WithWatch {
		objects := []client.Object{cma}
		for _, name := range []string{"yesterday", "today"} {
			objects = append(objects, &addonv1beta1.AddOnDeploymentConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
				Spec: addonv1beta1.AddOnDeploymentConfigSpec{
					CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "LEVEL", Value: name}},
				},
			})
		}
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithIndex(&addonv1beta1.AddOnDeploymentConfig{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
			WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
			Build()
	}
	for sentence, tc := range map[string]struct {
		cached *addonv1beta1.ClusterManagementAddOn
		want   string // The LEVEL that the add-on gets; empty when the pass is a lost race.
	}{
		"control: the cache has the present one":  {definition("present", 2, today), "today"},
		"its spec was edited":                     {definition("present", 1, yesterday), ""},
		"it was created again":                    {definition("earlier", 2, yesterday), ""},
		"another edit, with nothing to do for us": {definition("present", 1, today), "today"},
	} {
		t.Run(sentence, func(t *testing.T) {
			asked := 0
			live := interceptor.NewClient(build(definition("present", 2, today)), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
						asked++
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			cache := build(tc.cached)
			c := &Configurer{
				AddOns: addonapi.Client{Client: cache, Wire: addonapi.WireBeta}, Client: cache,
				Store: &addonconfig.Store{Client: cache, Live: live, Home: "home"},
			}
			states, err := c.Store.States(t.Context(), yesterday, today)
			require.NoError(t, err)
			addOn := fixture.AddOn("c1", fixture.Observed(fixture.Has(today, states[today].Hash), 1))
			result, err := c.Configure(t.Context(), addOn)
			if tc.want == "" {
				require.True(t, apierrors.IsConflict(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Len(t, result.Choice.Configs, 1)
			assert.Equal(t, tc.want, result.Choice.Configs[0].Name)
			assert.Zero(t, asked, "what changes nothing needs no request")

			for _, cluster := range []string{"c2", "c3"} {
				_, err = c.Configure(t.Context(), fixture.AddOn(cluster, fixture.Observed(fixture.Has(yesterday, states[yesterday].Hash), 1)))
				require.Equal(t, tc.cached.Generation == 1, apierrors.IsConflict(err), "%v", err)
			}
			if tc.cached.Generation == 2 {
				assert.Equal(t, 1, asked, "a version is confirmed once, for all clusters")
			}
		})
	}
}
