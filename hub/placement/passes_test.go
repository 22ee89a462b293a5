package placement

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
)

// delayed is a queue whose only use is AddAfter.
type delayed struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	add func(time.Duration)
}

func (d delayed) AddAfter(_ ctrl.Request, after time.Duration) { d.add(after) }

// The Placement selects c0 alone, of three that match; c1 lost its place by an edit. The agent of c2, which has no place,
// changes a claim again and again, which changes no decision.
func TestOneAgentDoesNotHoldUpTheRemovalOfOthers(t *testing.T) {
	for sentence, passes := range map[string]*fleet.Passes{"before": nil, "now": {}} {
		for _, period := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond} {
			t.Run(sentence+" "+period.String(), func(t *testing.T) {
				took := removedAfter(t, passes, period)
				t.Logf("removed after %s", took)
				assert.Less(t, took, 5*time.Minute)
			})
		}
	}
}

func removedAfter(t *testing.T, passes *fleet.Passes, period time.Duration) time.Duration {
	t.Helper()
	p := placement()
	p.Generation, p.UID = 1, "p"
	p.Spec.NumberOfClusters = new(int32(1))
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}},
		}},
	}}}
	key := client.ObjectKeyFromObject(p)
	set, binding := boundIn(p.Namespace, setGlobal)
	objects := []client.Object{p, set, binding, helloBy(p)}
	for _, name := range []string{"c0", "c1", "c2"} {
		c, addOn := withHello(name, nil)
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "zone", Value: "a"}}
		if objects = append(objects, c); name != "c2" {
			objects = append(objects, addOn)
		}
	}
	var during func()
	hub := hubWith(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
		err := c.List(ctx, l, o...)
		if _, is := l.(*clusterv1.ManagedClusterList); is && during != nil {
			during()
		}
		return err
	}}, objects...)
	clock := clocktesting.NewFakePassiveClock(noon())
	scheduler := &Reconciler{Client: hub, Live: hub, Clock: clock, Passes: passes}
	installer := installerOf(hub, hub, clock, passes)
	rnd := rand.New(rand.NewPCG(1, 2))
	now, due, remove := noon(), noon(), noon()
	var flap time.Time
	q := delayed{add: func(after time.Duration) {
		if at := now.Add(after); due.IsZero() || at.Before(due) {
			due = at
		}
	}}
	handler := scheduler.batched(scheduler.ofCluster)
	var all clusterv1.ManagedClusterList
	require.NoError(t, hub.List(t.Context(), &all))
	for i := range all.Items {
		handler.Create(t.Context(), event.CreateEvent{Object: &all.Items[i]}, q)
	}
	change := func() {
		flap = now.Add(period + time.Duration(rnd.IntN(int(period)/4)))
		var c clusterv1.ManagedCluster
		require.NoError(t, hub.Get(t.Context(), types.NamespacedName{Name: "c2"}, &c))
		older := c.DeepCopy()
		c.Status.ClusterClaims[0].Value = map[string]string{"a": "b", "b": "a"}[c.Status.ClusterClaims[0].Value]
		require.NoError(t, hub.Update(t.Context(), &c))
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &c}, q)
	}
	during = func() { // what a pass over thousands of clusters takes
		for end := now.Add(30 * time.Millisecond); now.Before(end); now = now.Add(5 * time.Millisecond) {
			if !now.Before(flap) {
				change()
			}
		}
		clock.SetTime(now)
	}
	for ; now.Before(noon().Add(10 * time.Minute)); now = now.Add(5 * time.Millisecond) {
		clock.SetTime(now)
		if !due.IsZero() && !now.Before(due) {
			due = time.Time{}
			if result := passOf(t, scheduler, key); result.RequeueAfter > 0 {
				q.add(result.RequeueAfter)
			}
		}
		if !now.Before(remove) {
			result, err := installer.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hello"}})
			require.NoError(t, err)
			remove = now.Add(max(result.RequeueAfter, time.Second))
		}
		if !now.Before(flap) {
			change()
		}
		var addon addonv1alpha1.ManagedClusterAddOn
		if hub.Get(t.Context(), types.NamespacedName{Namespace: "c1", Name: "hello"}, &addon) != nil {
			return now.Sub(noon())
		}
	}
	return now.Sub(noon())
}
