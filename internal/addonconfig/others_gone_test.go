package addonconfig

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/objectwatch"
)

// widgetsServed is the discovery of a hub with one kind of configurations of others.
type widgetsServed struct{}

func (widgetsServed) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	v1 := metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"}
	return []*metav1.APIGroup{{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}},
		[]*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
		}}}, nil
}

// As TestNothingIsKeptOfConfigurationsThatAreGone, of a kind that is watched by its name: a tenant makes one, names it,
// names another one, and deletes the former, again and again.
func TestNothingIsKeptOfConfigurationsOfOtherKindsThatAreGone(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	hub := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList"})
	s := &Store{Client: fake.NewClientBuilder().Build(), Home: "home"}
	// As hub/configure does with the changes of the watcher.
	watcher := objectwatch.NewFor(objectwatch.Hub{
		Objects: hub, Kinds: widgetsServed{}, Clock: clock.RealClock{},
	}, 0, func(ref objectwatch.Ref) { s.Drop(KeyOf(ref)) })
	s.Others = watcher
	go func() { _ = watcher.Start(t.Context()) }()
	for i := range 5 {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"i": int64(i)}}}
		object.SetAPIVersion("example.com/v1")
		object.SetKind("Widget")
		object.SetNamespace("ns")
		object.SetName(fmt.Sprint("w", i))
		object.SetUID("u")
		object.SetResourceVersion(fmt.Sprint(i + 1))
		_, err := hub.Resource(widgets).Namespace("ns").Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		config := addonv1beta1.AddOnConfig{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "example.com", Resource: "widgets"},
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: object.GetName()},
		}
		s.Want("hello", Named{Configs: []addonv1beta1.AddOnConfig{config}}) // and no more the one before
		require.Eventually(t, func() bool {
			states, err := s.States(t.Context(), config)
			return err == nil && states[config].Hash != ""
		}, 20*time.Second, 10*time.Millisecond)
		if i > 0 {
			require.NoError(t, hub.Resource(widgets).Namespace("ns").Delete(t.Context(), fmt.Sprint("w", i-1), metav1.DeleteOptions{}))
		}
	}
	s.Want("hello")
	require.Eventually(t, func() bool { return watcher.Watches() == 0 }, 20*time.Second, 10*time.Millisecond)
	left := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.hashes) }
	require.Eventually(t, func() bool { return left() == 0 }, 20*time.Second, 10*time.Millisecond, "nobody names any of them")
}
