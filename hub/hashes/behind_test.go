package hashes

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// watched has the object that it knows for every reference.
type watched struct{ object *unstructured.Unstructured }

func (watched) Want(string, []objectwatch.Ref, ...objectwatch.Ref) {}

func (w watched) Get(objectwatch.Ref) objectwatch.State {
	return objectwatch.State{Phase: objectwatch.Found, Object: w.object}
}

// settings is a ConfigMap with a value.
func settings(value string, version int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"level": value}}}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("ns")
	object.SetName("settings")
	object.SetUID("s")
	object.SetResourceVersion(strconv.Itoa(version))
	return object
}

// hubWith returns a hub with two configurations that a ClusterManagementAddOn names, with these hashes in its status.
func hubWith(t *testing.T, own string, version int, reported ...*addonv1beta1.ConfigSpecHash) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonv1beta1.Install, appsv1.AddToScheme, corev1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	for i, config := range []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("own"), fixture.ConfigMap("settings")} {
		cma.Spec.DefaultConfigs = append(cma.Spec.DefaultConfigs, config)
		if i < len(reported) {
			cma.Status.DefaultConfigReferences = append(cma.Status.DefaultConfigReferences,
				addonv1beta1.DefaultConfigReference{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: reported[i]})
		}
	}
	nameOf := func(o client.Object) []string { return []string{o.GetName()} }
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(cma).WithObjects(
		cma, &addonv1beta1.AddOnDeploymentConfig{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "own", UID: "u", Generation: int64(version), ResourceVersion: strconv.Itoa(version),
			},
			Spec: addonv1beta1.AddOnDeploymentConfigSpec{
				CustomizedVariables: []addonv1beta1.CustomizedVariable{{Name: "LEVEL", Value: own}},
			},
		}, settings("new", 2)).
		WithIndex(&addonv1beta1.AddOnDeploymentConfig{}, metav1.ObjectNameField, nameOf).
		WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, nameOf).
		WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, nameOf).Build()
}

// The program of an author starts with an API server that is behind for a kind of configuration: of what it reports, a
// hub manager of OCM rolls each hash out to all clusters. What is confirmed is reported all the same.
//
// Shows: hub/author-hashes-behind
func TestAnEarlierHashIsNotReported(t *testing.T) {
	own, configMap := fixture.DeploymentConfig("own"), fixture.ConfigMap("settings")
	states, err := (&addonconfig.Store{
		Client: hubWith(t, "new", 2), Others: watched{settings("new", 2)},
	}).States(t.Context(), own, configMap)
	require.NoError(t, err)
	// Hashes of references, the first of which are the present ones.
	now := []string{states[own].Hash, states[configMap].Hash}
	const former = "former"
	for sentence, tc := range map[string]struct {
		own            string
		version        int
		settings       *unstructured.Unstructured
		reported, want []string
		again          bool
		// asks is how often the API server is asked.
		asks int
	}{
		"all is reported":      {"new", 2, settings("new", 2), now, now, false, 0},
		"nothing is reported":  {"new", 2, settings("new", 2), []string{"", ""}, now, false, 2},
		"both were edited":     {"new", 2, settings("new", 2), []string{former, former}, now, false, 2},
		"one is of before":     {"old", 1, settings("new", 2), now, now, true, 1},
		"another is of before": {"new", 2, settings("old", 1), now, now, true, 1},
		"the other was edited": {"old", 1, settings("new", 2), []string{now[0], former}, now, true, 2},
		"one is of before, and nothing is reported": {
			"old", 1, settings("new", 2), []string{"", ""}, []string{"", now[1]}, true, 2,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, tc.own, tc.version, fixture.Hashed(own, tc.reported[0]), fixture.Hashed(configMap, tc.reported[1]))
			asks := 0
			live := interceptor.NewClient(hubWith(t, "new", 2), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					asks++
					return c.List(ctx, list, opts...)
				},
			})
			r := &Reconciler{
				AddOns:   addonapi.Client{Client: cache, Wire: addonapi.WireBeta},
				Store:    &addonconfig.Store{Client: cache, Live: live, Home: "home", Others: watched{tc.settings}},
				Supports: func(string, addonv1beta1.ConfigGroupResource) bool { return true },
				Clock:    clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
			}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
			require.NoError(t, err)
			assert.Equal(t, tc.again, result.Requeue, "it is a lost race")
			assert.Equal(t, tc.asks, asks)
			after := &addonv1beta1.ClusterManagementAddOn{}
			require.NoError(t, cache.Get(t.Context(), client.ObjectKey{Name: "hello"}, after))
			for i, want := range tc.want {
				assert.Equal(t, want, after.Status.DefaultConfigReferences[i].DesiredConfig.SpecHash)
			}
		})
	}
}

// A user who lets a program watch one ConfigMap by its name need not let it list that: its hash is reported all the
// same.
func TestAHashIsReportedWithoutTheRightToAsk(t *testing.T) {
	own, configMap := fixture.DeploymentConfig("own"), fixture.ConfigMap("settings")
	cache := hubWith(t, "new", 2, fixture.Hashed(own, ""), fixture.Hashed(configMap, ""))
	r := &Reconciler{
		AddOns: addonapi.Client{Client: cache, Wire: addonapi.WireBeta},
		Store: &addonconfig.Store{
			Client: cache, Home: "home", Others: watched{settings("new", 2)},
			Live: interceptor.NewClient(cache, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return apierrors.NewForbidden(corev1.Resource("configmaps"), "settings", nil)
				},
			}),
		},
		Supports: func(string, addonv1beta1.ConfigGroupResource) bool { return true },
		Clock:    clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}})
	require.NoError(t, err)
	assert.False(t, result.Requeue)
	after := &addonv1beta1.ClusterManagementAddOn{}
	require.NoError(t, cache.Get(t.Context(), client.ObjectKey{Name: "hello"}, after))
	assert.NotEmpty(t, after.Status.DefaultConfigReferences[1].DesiredConfig.SpecHash)
}
