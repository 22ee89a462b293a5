package install

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/names"
)

// As TestAnEditOfYesterdayExplainsNoRemovalOfToday, where the hub manager restarts before c2 loses its label. The API server
// that it finds may not have seen the binding of yesterday yet, for a moment.
func TestAnEditOfYesterdayExplainsNoRemovalOfTodayAfterARestart(t *testing.T) {
	for sentence, behind := range map[string]bool{"the cache has the binding": false, "it comes ten seconds later": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 25}
			h.q.Add(ofFleet("hello"))
			h.passes(time.Second)
			h.q.Add(ofFleet("hello")) // the event of the annotation that it wrote
			h.passes(time.Second)
			live := h.writing(func() bool { return true })
			h.r.Live = live
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
			require.NoError(t, h.Create(t.Context(), binding)) // an edit
			h.q.Add(ofFleet("hello"))
			h.dropped("c1")
			h.passes(10 * time.Second)
			h.clock.step(24 * time.Hour)
			h.q.Add(ofFleet("hello"))
			h.passes(10 * time.Second)
			require.Empty(t, h.removed, "its agent writes its ManagedCluster all the time")

			hidden := behind
			cache := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if bindings, is := list.(*clusterv1beta2.ManagedClusterSetBindingList); is && hidden {
						bindings.Items = slices.DeleteFunc(bindings.Items, func(b clusterv1beta2.ManagedClusterSetBinding) bool { return b.Name == "b" })
					}
					return err
				},
			})
			h.r = &Reconciler{
				Client: cache, Live: live, AddOns: h.r.AddOns, Clock: h.clock, Workers: 1, Limit: h.r.Limit,
				Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: true},
			}
			h.q.Add(ofFleet("hello"))
			h.passes(10 * time.Second)
			hidden = false // the event of the binding
			h.q.Add(ofFleet("hello"))
			h.passes(10 * time.Second)
			h.dropped("c1", "c2") // no edit explains that of c2
			h.passes(20 * time.Second)
			assert.NotContains(t, h.removed, "c2", "more than a quarter of the clusters, which no edit of today explains")
		})
	}
}

// A user lets a Placement drop clusters that are in no bound set, by an annotation, and takes that back at once. Days
// later the user does the same again, and both clusters go: that is an edit of now.
func TestAnEditThatWasTakenBackIsOneAgainWhenItIsMadeAgain(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Limit = Limit{Percent: 25}
	settles := func(within time.Duration) {
		for range 2 { // the second is the event of the annotation that the first writes
			h.q.Add(ofFleet("hello"))
			h.passes(within)
		}
	}
	annotates := func(annotations map[string]string) {
		var p clusterv1beta1.Placement
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
		p.Annotations = annotations
		require.NoError(t, h.Update(t.Context(), &p))
		settles(time.Second)
	}
	honours := map[string]string{names.AnnotationSetBindings: names.SetBindingsHonoured}
	settles(time.Second)
	annotates(honours)
	h.passes(time.Minute)
	annotates(nil)
	h.passes(3 * 24 * time.Hour)
	annotates(honours)
	h.dropped("c1", "c2")
	settles(5 * time.Minute)
	assert.ElementsMatch(t, []string{"c1", "c2"}, h.removed)
}
