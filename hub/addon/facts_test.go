package addon_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/library-facts
func TestWhichFactsRenderAgain(t *testing.T) {
	few := []addon.ClusterFact{
		addon.ClusterAnnotations("a"), addon.ClusterLabels("l"), addon.ClusterClaims("c"), addon.ClusterConditions("Ready"),
	}
	label := func(key string) func(*addon.Request) {
		return func(r *addon.Request) { r.Cluster.Labels = map[string]string{key: "v"} }
	}
	annotation := func(key string) func(*addon.Request) {
		return func(r *addon.Request) { r.Cluster.Annotations = map[string]string{key: "v"} }
	}
	claim := func(name string) func(*addon.Request) {
		return func(r *addon.Request) {
			r.Cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: name, Value: "v"}}
		}
	}
	condition := func(kind string) func(*addon.Request) {
		return func(r *addon.Request) {
			r.Cluster.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
		}
	}
	tests := map[string]struct {
		change func(r *addon.Request)
		facts  []addon.ClusterFact
		differ bool
	}{
		"a label renders again":                       {label("l"), nil, true},
		"the health of an add-on in a label does not": {label("feature.open-cluster-management.io/addon-x"), nil, false},
		"an annotation does":                          {annotation("a"), nil, true},
		"a claim does":                                {claim("c"), nil, true},
		"a condition does not":                        {condition("Ready"), nil, false},
		"a named label does":                          {label("l"), few, true},
		"another label does not":                      {label("k"), few, false},
		"a named annotation does":                     {annotation("a"), few, true},
		"another annotation does not":                 {annotation("b"), few, false},
		"image registries always do":                  {annotation(names.AnnotationImageRegistries), few, true},
		"a named claim does":                          {claim("c"), few, true},
		"another claim does not":                      {claim("d"), few, false},
		"a named condition does":                      {condition("Ready"), few, true},
		"another condition does not":                  {condition("Other"), few, false},
		"the Kubernetes version always does": {func(r *addon.Request) { r.Cluster.Status.Version.Kubernetes = "v1.32.0" },
			[]addon.ClusterFact{}, true},
		"values in the add-on object do": {func(r *addon.Request) { r.AddOn.Annotations[names.AnnotationValues] = "{}" }, few, true},
		"what the hub notes there does not": {func(r *addon.Request) {
			r.AddOn.Annotations[names.AnnotationHookAttempts] = "{}"
		}, nil, false},
		"a hosting cluster does": {func(r *addon.Request) {
			r.Hosting = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
		}, few, true},
		"another content of a configuration does": {func(r *addon.Request) { r.Choice.Configs[0].SpecHash = "other" }, few, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent := build(t, addon.Options{Version: "1", ClusterFacts: tc.facts})
			before := request(t, addonv1beta1.AddOnDeploymentConfigSpec{})
			after := request(t, addonv1beta1.AddOnDeploymentConfigSpec{})
			tc.change(&after)
			first, err := agent.Resolve(t.Context(), before)
			require.NoError(t, err)
			second, err := agent.Resolve(t.Context(), after)
			require.NoError(t, err)
			require.NotEmpty(t, first.Key)
			assert.Equal(t, tc.differ, first.Key != second.Key)
		})
	}
}

// Shows: hub/library-facts
func TestAProgramThatHidesItsVersionIsRenderedInEachPass(t *testing.T) {
	resolved, err := build(t, addon.Options{}).Resolve(t.Context(), request(t))
	require.NoError(t, err)
	assert.Empty(t, resolved.Key)
	keys := map[string]bool{}
	for _, options := range []addon.Options{
		{Version: "1"}, {Version: "2"}, {Version: "1", InstallNamespace: func(context.Context, addon.Request) (string, error) {
			return "own", nil
		}},
	} {
		resolved, err := build(t, options).Resolve(t.Context(), request(t))
		require.NoError(t, err)
		keys[resolved.Key+" by "+resolved.Version] = true
	}
	assert.Len(t, keys, 3)
}
