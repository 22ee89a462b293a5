package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A configuration is replaced (kubectl replace --force, or a tool that prunes and creates): its generation begins anew.
// All clusters have the content of the new one. Then the hub manager starts with an API server that is behind and has
// the earlier one, which is of a later generation.
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
