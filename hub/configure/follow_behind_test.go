package configure

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// An add-on has a configuration of its own. The program of its author starts with an API server that is behind, and has
// the content of an earlier generation: it would report that, and render it in the next pass.
//
// Shows: hub/author-hashes-behind
func TestAProgramDoesNotReportAnEarlierConfiguration(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	nameOf := func(o client.Object) []string { return []string{o.GetName()} }
	build := func(value string, generation int64) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			&addonv1beta1.AddOnDeploymentConfig{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "own", UID: "u", Generation: generation,
					ResourceVersion: strconv.FormatInt(generation, 10),
				},
				Spec: addonv1beta1.AddOnDeploymentConfigSpec{
					CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "LEVEL", Value: value}},
				},
			},
			&addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
				Name: "hello", Annotations: map[string]string{names.AnnotationLifecycle: "self"},
			}}).
			WithIndex(&addonv1beta1.AddOnDeploymentConfig{}, metav1.ObjectNameField, nameOf).
			WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, nameOf).
			Build()
	}
	config, live := fixture.DeploymentConfig("own"), build("new", 3)
	states, err := (&addonconfig.Store{Client: live}).States(t.Context(), config)
	require.NoError(t, err)
	present := states[config].Hash
	for sentence, tc := range map[string]struct {
		cache      client.WithWatch
		hash       string
		generation int64
		lost       bool
	}{
		"control: it has what is reported":        {build("new", 3), present, 3, false},
		"nothing is reported yet":                 {build("new", 3), "", 0, false},
		"an earlier content is reported":          {build("new", 3), "old", 2, false},
		"it has an earlier content":               {build("old", 2), present, 3, true},
		"it has the same content of before":       {build("new", 1), present, 3, true},
		"it has an earlier one, and none is said": {build("old", 2), "", 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.AddOn("c1", fixture.Observed(fixture.Has(config, tc.hash), tc.generation))
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{config}
			c := &Follower{Configurer: &Configurer{
				AddOns: addonapi.Client{Client: tc.cache, Wire: addonapi.WireBeta}, Client: tc.cache,
				Store: &addonconfig.Store{Client: tc.cache, Live: live, Home: "home"},
			}, Supports: func(string, addonv1beta1.ConfigGroupResource) bool { return true }}
			result, err := c.Configure(t.Context(), addOn)
			if tc.lost {
				require.Error(t, err)
				assert.True(t, reconcile.IsLostRace(err), "the event of the configuration starts the next pass: %v", err)
				return
			}
			require.NoError(t, err)
			result.Record(addOn, addon.Progress{})
			assert.Equal(t, present, addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash)
			assert.EqualValues(t, 3, addOn.Status.ConfigReferences[0].LastObservedGeneration)
		})
	}
}
