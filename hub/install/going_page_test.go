package install

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// pagesHub has add-on hello of Placement ns/p on c1 and c2, each on a page of its own.
type pagesHub struct {
	*testing.T

	client.WithWatch
	r             *Reconciler
	q             workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]
	clock         *ticking
	made, removed []string
}

// writing is the API server while the agent of c1 writes its ManagedCluster all the time.
func (h *pagesHub) writing(writes func() bool) client.WithWatch {
	version := 0
	return interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, is := o.(*clusterv1.ManagedCluster); is && key.Name == "c1" && writes() {
				version++
				o.SetResourceVersion(fmt.Sprint("changed-", version))
			}
			return err
		},
	})
}

// bindingOf binds a set to namespace ns.
func bindingOf(set string) *clusterv1beta2.ManagedClusterSetBinding {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: set}}
	binding.Spec.ClusterSet = set
	return binding
}

func newPagesHub(t *testing.T, own bool, age time.Duration, change func(*clusterv1beta1.Placement)) *pagesHub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, addonv1alpha1.Install, corev1.AddToScheme,
	} {
		require.NoError(t, install(scheme))
	}
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"},
	}}
	var pages []*clusterv1beta1.PlacementDecision
	for i, name := range []string{"c1", "c2"} {
		page := pageOf("p", i+1, name)
		page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
		page.Finalizers = []string{"example.com/scheduler"}
		page.CreationTimestamp = metav1.NewTime(noon().Add(-age))
		pages = append(pages, page)
	}
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 2}}
	placement.Status.NumberOfSelectedClusters = 2
	if own {
		placement.Status.Conditions = []metav1.Condition{fleet.Mark(2, pages)}
	}
	change(placement)
	objects := []client.Object{cma, pages[0], pages[1], placement, bindingOf("global")}
	for _, name := range []string{"c1", "c2"} {
		managed := clusterThat(metav1.ConditionTrue, noon().Add(-time.Hour))
		managed.Name, managed.Spec.HubAcceptsClient = name, true
		addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "hello", UID: types.UID(name + "/hello"),
			Labels:            map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
			CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
		}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}}
		objects = append(objects, managed, addon, namespace)
	}
	h := &pagesHub{
		T: t, clock: &ticking{at: noon().Add(time.Hour)},
		q: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]()),
	}
	t.Cleanup(h.q.ShutDown)
	h.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&clusterv1beta1.PlacementDecision{}, addonapi.IndexCluster, addonapi.SelectedClusters).
		WithIndex(&clusterv1beta2.ManagedClusterSet{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&addonv1alpha1.ClusterManagementAddOn{}, addonapi.IndexPlacement, func(o client.Object) []string {
			var keys []string
			for _, key := range addonapi.StrategyOf(o).Placements {
				keys = append(keys, key.String())
			}
			return keys
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				err := c.Create(ctx, o, options...)
				if _, is := o.(*addonv1alpha1.ManagedClusterAddOn); is && err == nil {
					h.made = append(h.made, o.GetNamespace())
					h.r.ofAddOn().CreateFunc(ctx, event.CreateEvent{Object: o}, h.q)
				}
				return err
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				err := c.Delete(ctx, o, options...)
				if _, is := o.(*addonv1alpha1.ManagedClusterAddOn); is && err == nil {
					h.removed = append(h.removed, o.GetNamespace())
					h.r.ofAddOn().DeleteFunc(ctx, event.DeleteEvent{Object: o}, h.q)
				}
				return err
			},
		}).Build()
	h.r = &Reconciler{
		Client: h, Live: h, AddOns: addonapi.Client{Client: h}, Clock: h.clock, Workers: 1,
		Placements: &fleet.Placements{Client: h, Clock: h.clock, Own: own},
	}
	h.q.Add(ofFleet("hello"))
	h.passes(time.Minute)
	require.Empty(t, h.made)
	require.Empty(t, h.removed, "both clusters are selected")
	return h
}

// passes makes all passes that are due within a time.
func (h *pagesHub) passes(within time.Duration) {
	h.Helper()
	until := h.clock.Now().Add(within)
	due := map[ctrlreconcile.Request]time.Time{}
	for range 1000 {
		for h.q.Len() > 0 {
			request, _ := h.q.Get()
			h.q.Done(request)
			due[request] = h.clock.Now()
		}
		var next ctrlreconcile.Request
		var at time.Time
		for request, when := range due {
			if at.IsZero() || when.Before(at) {
				next, at = request, when
			}
		}
		if at.IsZero() || at.After(until) {
			break
		}
		if now := h.clock.Now(); at.After(now) {
			h.clock.step(at.Sub(now))
		}
		delete(due, next)
		result, err := h.r.Reconcile(h.Context(), next)
		require.NoError(h, err)
		switch {
		case result.RequeueAfter > 0:
			due[next] = h.clock.Now().Add(result.RequeueAfter)
		case result.Requeue:
			due[next] = h.clock.Now().Add(time.Second)
		}
	}
	for request := range due { // as a delaying queue has them
		h.q.Add(request)
	}
	if now := h.clock.Now(); until.After(now) {
		h.clock.step(until.Sub(now))
	}
}

func (h *pagesHub) page(name string) *clusterv1beta1.PlacementDecision {
	h.Helper()
	var page clusterv1beta1.PlacementDecision
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: name}, &page))
	return &page
}

// begin deletes a page, which its finalizer keeps; the handler hears of it.
func (h *pagesHub) begin(name string) {
	h.Helper()
	older := h.page(name)
	require.NoError(h, h.Delete(h.Context(), older.DeepCopy()))
	newer := h.page(name)
	require.NotNil(h, newer.DeletionTimestamp)
	h.r.ofDecision().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
}

// end takes off the finalizer: the page is gone, and the handler hears of that.
func (h *pagesHub) end(name string) {
	h.Helper()
	older := h.page(name)
	newer := older.DeepCopy()
	newer.Finalizers = nil
	require.NoError(h, h.Update(h.Context(), newer))
	h.r.ofDecision().DeleteFunc(h.Context(), event.DeleteEvent{Object: older}, h.q)
}

// gone deletes a page without a finalizer.
func (h *pagesHub) gone(name string) {
	h.Helper()
	page := h.page(name)
	page.Finalizers = nil
	require.NoError(h, h.Update(h.Context(), page))
	require.NoError(h, h.Delete(h.Context(), page.DeepCopy()))
	h.r.ofDecision().DeleteFunc(h.Context(), event.DeleteEvent{Object: page}, h.q)
}

// decide writes that our Placement decided for c1 alone. It empties a page that is kept.
func (h *pagesHub) decide() {
	h.Helper()
	var pages clusterv1beta1.PlacementDecisionList
	require.NoError(h, h.List(h.Context(), &pages))
	for i := range pages.Items {
		if older := &pages.Items[i]; older.DeletionTimestamp != nil {
			newer := older.DeepCopy()
			newer.Status.Decisions = nil
			require.NoError(h, h.Update(h.Context(), newer))
			h.r.ofDecision().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
		}
	}
	var p clusterv1beta1.Placement
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	older := p.DeepCopy()
	p.Status.NumberOfSelectedClusters = 1
	p.Status.Conditions = []metav1.Condition{fleet.Mark(2, []*clusterv1beta1.PlacementDecision{h.page("p-decision-1")})}
	require.NoError(h, h.Update(h.Context(), &p))
	h.r.ofPlacement().UpdateFunc(h.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &p}, h.q)
}

// TestAPageThatIsAboutToGoInstallsNothing: a finalizer of another client keeps a page with a cluster that is not
// selected any more. The removal did not count it and the installation did, so that the add-on went and came again.
func TestAPageThatIsAboutToGoInstallsNothing(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.begin("p-decision-2")
	h.decide()
	h.passes(24 * time.Hour)
	assert.Equal(t, []string{"c2"}, h.removed)
	assert.Empty(t, h.made)
}

// TestAPageOfAnotherSchedulerGoesInTwoSteps: a Placement is scheduled by another controller, which has a finalizer
// on its pages. It deletes the page of c2, and takes the finalizer off a moment later. The add-on on c2 must go.
func TestAPageOfAnotherSchedulerGoesInTwoSteps(t *testing.T) {
	asIs := func(*clusterv1beta1.Placement) {}
	disabled := func(p *clusterv1beta1.Placement) {
		p.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
		p.Status = clusterv1beta1.PlacementStatus{}
	}
	one := func(p *clusterv1beta1.Placement) { p.Status.NumberOfSelectedClusters = 1 }
	for sentence, tc := range map[string]struct {
		own     bool
		change  func(*clusterv1beta1.Placement)
		between time.Duration
		drop    func(*clusterv1beta1.Placement)
	}{
		"OCM schedules, at one instant (control)":                       {change: asIs, drop: one},
		"OCM schedules, ten seconds":                                    {change: asIs, between: 10 * time.Second, drop: one},
		"the Placement says that others schedule it, at once (control)": {own: true, change: disabled, drop: asIs},
		"the Placement says that others schedule it, ten seconds":       {own: true, change: disabled, between: 10 * time.Second, drop: asIs},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, tc.own, 0, tc.change)
			h.begin("p-decision-2")
			if tc.between > 0 {
				h.passes(tc.between)
			}
			h.end("p-decision-2")
			var p clusterv1beta1.Placement
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
			older := p.DeepCopy()
			tc.drop(&p)
			require.NoError(t, h.Update(t.Context(), &p))
			h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: &p}, h.q)
			h.passes(24 * time.Hour)
			assert.Equal(t, []string{"c2"}, h.removed, "no placement has selected c2 for a day")
			assert.Empty(t, h.made)
		})
	}
}

// TestAPlacementIsMadeAgainWhileItsPagesAreKept: our own Placement is deleted and made again, as GitOps tools do,
// and selects c1 alone afterwards. A finalizer of another client keeps its former pages for ten seconds.
func TestAPlacementIsMadeAgainWhileItsPagesAreKept(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	var p clusterv1beta1.Placement
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	require.NoError(t, h.Delete(t.Context(), &p))
	h.r.ofPlacement().DeleteFunc(t.Context(), event.DeleteEvent{Object: &p}, h.q)
	h.passes(100 * time.Millisecond)
	h.begin("p-decision-1") // the garbage collector
	h.begin("p-decision-2")
	h.passes(5 * time.Second)

	again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p2", Generation: 1}}
	page := pageOf("p2", 3, "c1")
	page.Name, page.Namespace, page.Labels = "p-decision-3", "ns", map[string]string{names.LabelPlacement: "p"}
	page.CreationTimestamp = metav1.NewTime(h.clock.Now())
	require.NoError(t, h.Create(t.Context(), again))
	h.r.ofPlacement().CreateFunc(t.Context(), event.CreateEvent{Object: again}, h.q)
	require.NoError(t, h.Create(t.Context(), page))
	h.r.ofDecision().CreateFunc(t.Context(), event.CreateEvent{Object: page}, h.q)
	decided := again.DeepCopy()
	decided.Status.NumberOfSelectedClusters = 1
	decided.Status.Conditions = []metav1.Condition{fleet.Mark(1, []*clusterv1beta1.PlacementDecision{page})}
	require.NoError(t, h.Update(t.Context(), decided))
	h.r.ofPlacement().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: again, ObjectNew: decided}, h.q)
	h.passes(5 * time.Second)
	h.end("p-decision-1")
	h.end("p-decision-2")
	h.passes(24 * time.Hour)
	assert.Equal(t, []string{"c2"}, h.removed, "the Placement has not selected c2 for a day")
	assert.Empty(t, h.made)
}

// TestInstallationAndRemovalAgree: what installs and what removes must agree on which clusters a Placement selects.
func TestInstallationAndRemovalAgree(t *testing.T) {
	for sentence, own := range map[string]bool{"our placement": true, "OCM's": false} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, own, 0, func(*clusterv1beta1.Placement) {})
			h.begin("p-decision-2")
			d, err := h.r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
			require.NoError(t, err)
			f, err := h.r.observe(t.Context(), types.NamespacedName{Namespace: "c2", Name: "hello"})
			require.NoError(t, err)
			assert.Equal(t, d.Selects("c2"), f.selected, "removal and rollout say the first, installation the second")
		})
	}
}

// TestAPageThatIsKeptDropsAClusterNow: two Placements install the add-on: ours, which drops c2, and one that others
// schedule, which selects c1. The pages are a month old, and the cluster came back an hour before. Our Placement
// drops c2 while it is available, so the add-on goes.
func TestAPageThatIsKeptDropsAClusterNow(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for sentence, kept := range map[string]bool{"the page is gone at once (control)": false, "a finalizer keeps it": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, month, func(*clusterv1beta1.Placement) {})
			other := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "q", UID: "q", Generation: 1,
				Annotations: map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"},
			}}
			page := pageOf("q", 1, "c1")
			page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "q"}
			page.CreationTimestamp = metav1.NewTime(noon().Add(-month))
			require.NoError(t, h.Create(t.Context(), other))
			require.NoError(t, h.Create(t.Context(), page))
			var cma addonv1alpha1.ClusterManagementAddOn
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
			cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "q"},
			})
			require.NoError(t, h.Update(t.Context(), &cma))
			h.passes(time.Minute)

			if kept {
				h.begin("p-decision-2")
			} else {
				h.gone("p-decision-2")
			}
			h.decide()
			h.passes(24 * time.Hour)
			assert.Equal(t, []string{"c2"}, h.removed)
		})
	}
}
