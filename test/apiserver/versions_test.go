package apiserver

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/test/sandbox"
)

// versioned returns clients of ClusterManagementAddOns in v1alpha1 and v1beta1, between which a webhook converts, and the
// configuration of clients.
func versioned(t *testing.T, converter http.Handler) (alpha, beta dynamic.ResourceInterface, config *rest.Config) {
	t.Helper()
	url := "https://webhook/convert"
	documents, err := sandbox.CRDsWithConversion(apiextensionsv1.WebhookClientConfig{URL: &url})
	require.NoError(t, err)
	resources, err := Defined(documents)
	require.NoError(t, err)
	s := New(Options{Resources: resources, Webhook: converter})
	config = &rest.Config{Host: "http://memory", Transport: s.Transport("jane"), QPS: -1}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	kind := schema.GroupVersionResource{
		Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "clustermanagementaddons",
	}
	return client.Resource(kind), client.Resource(kind.GroupResource().WithVersion("v1beta1")), config
}

// management is a ClusterManagementAddOn in a version.
func management(version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/" + version, "kind": "ClusterManagementAddOn",
		"metadata": map[string]any{"name": "a"}, "spec": spec,
	}}
}

func TestEachClientSeesItsOwnVersion(t *testing.T) {
	alpha, beta, config := versioned(t, webhook.Handler(logr.Discard()))
	events := map[string]watch.Interface{}
	for name, client := range map[string]dynamic.ResourceInterface{"v1alpha1": alpha, "v1beta1": beta} {
		w, err := client.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		events[name] = w
	}
	config1 := map[string]any{"group": "g", "resource": "r"}
	config2 := map[string]any{"group": "g", "resource": "r", "name": "n"}
	made, err := beta.Create(t.Context(), management("v1beta1", map[string]any{"defaultConfigs": []any{config2}}),
		metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, int64(1), made.GetGeneration())
	inAlpha, err := alpha.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, made.GetUID(), inAlpha.GetUID())
	supported, _, err := unstructured.NestedSlice(inAlpha.Object, "spec", "supportedConfigs")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"group": "g", "resource": "r", "defaultConfig": map[string]any{"name": "n"}}}, supported)

	require.NoError(t, unstructured.SetNestedSlice(inAlpha.Object, []any{config1}, "spec", "supportedConfigs"))
	changed, err := alpha.Update(t.Context(), inAlpha, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, int64(2), changed.GetGeneration())
	inBeta, err := beta.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	configs, _, err := unstructured.NestedSlice(inBeta.Object, "spec", "defaultConfigs")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"group": "g", "resource": "r", "name": "__reserved_no_default__"}}, configs)
	same, err := beta.Update(t.Context(), inBeta, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, inBeta, same, "a write that changes nothing writes nothing, in the other version either")

	for version, w := range events {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified} {
			event := <-w.ResultChan()
			assert.Equal(t, kind, event.Type)
			seen, is := event.Object.(*unstructured.Unstructured)
			require.True(t, is)
			assert.Equal(t, version, seen.GroupVersionKind().Version)
		}
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	groups, err := client.ServerGroups()
	require.NoError(t, err)
	for _, group := range groups.Groups {
		if group.Name == "addon.open-cluster-management.io" {
			assert.Equal(t, "v1beta1", group.PreferredVersion.Version, "although v1alpha1 is stored")
		}
	}
}

func TestWithoutAConversionOnlyTheStoredVersionIsServed(t *testing.T) {
	for name, converter := range map[string]http.Handler{
		"nobody serves it": nil,
		"it fails": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "down", http.StatusServiceUnavailable)
		}),
		"it says something else": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }),
	} {
		t.Run(name, func(t *testing.T) {
			alpha, beta, _ := versioned(t, converter)
			_, err := beta.Create(t.Context(), management("v1beta1", map[string]any{}), metav1.CreateOptions{})
			assert.True(t, apierrors.IsInternalError(err), "%v", err)
			list, err := alpha.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Empty(t, list.Items)
			w, err := beta.Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer w.Stop()
			_, err = alpha.Create(t.Context(), management("v1alpha1", map[string]any{}), metav1.CreateOptions{})
			require.NoError(t, err)
			event := <-w.ResultChan()
			assert.Equal(t, watch.Error, event.Type)
			_, err = beta.List(t.Context(), metav1.ListOptions{})
			assert.True(t, apierrors.IsInternalError(err), "%v", err)
		})
	}
}
