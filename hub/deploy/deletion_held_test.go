package deploy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// The namespace of the cluster begins to go a moment before a pass that removes the finalizers, or a former hosting
// cluster is not in the cache yet. No event of either starts a pass for the add-on, so this one must be repeated.
func TestADeletionThatACacheHoldsUpIsRepeated(t *testing.T) {
	c1, ns := clusterThatIs("c1", true), ownNamespace("c1")
	ending := ownNamespace("c1")
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Unix(999, 0)), []string{"kubernetes"}
	leaving := addOnAt("c1")
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedObjects}
	cache := cacheOrHub(t, interceptor.Funcs{}, leaving, c1, ns)
	live := cacheOrHub(t, interceptor.Funcs{}, leaving, c1, ending)
	r := behindIn(cache, live, only{})
	result, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	after := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(leaving), after), "its finalizer went by what only the cache says")
	assert.Equal(t, leaving.Finalizers, after.Finalizers)
	// The predicate of the watch of namespaces in SetupWithManager.
	passes := predicate.Or[client.Object](predicate.LabelChangedPredicate{}, onlyCreated())
	wakes := passes.Update(event.UpdateEvent{ObjectOld: ns, ObjectNew: ending})
	assert.True(t, err != nil || !result.IsZero() || wakes,
		"the add-on still has %v, the pass is not repeated, and the event of the namespace starts none", after.Finalizers)
}

// A user mistyped the hosting cluster. client-go refuses such a namespace before it sends anything.
func TestAMistypedHostDoesNotKeepAnAddOnFromGoing(t *testing.T) {
	for _, host := range []string{"host/", ".."} {
		c1, ns := clusterThatIs("c1", true), ownNamespace("c1")
		leaving := addOnAt("c1")
		leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedObjects}
		leaving.Annotations = map[string]string{names.AnnotationHostingCluster: host, names.AnnotationHostedOn: "host"}
		funcs := interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, to client.ObjectList, opts ...client.ListOption) error {
				o := client.ListOptions{}
				o.ApplyOptions(opts)
				if msgs := path.IsValidPathSegmentName(o.Namespace); len(msgs) > 0 { // rest.Request.Namespace
					return fmt.Errorf("invalid namespace %q: %s", o.Namespace, strings.Join(msgs, ", "))
				}
				return c.List(ctx, to, opts...)
			},
		}
		cache := cacheOrHub(t, interceptor.Funcs{}, leaving, c1, ns)
		live := cacheOrHub(t, funcs, leaving, c1, ns)
		_, err := behindIn(cache, live, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
		t.Log(err)
		after := &addonv1alpha1.ManagedClusterAddOn{}
		err = cache.Get(t.Context(), client.ObjectKeyFromObject(leaving), after)
		assert.Error(t, err, "the add-on stays with %v", after.Finalizers)
	}
}
