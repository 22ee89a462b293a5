package install

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// hub holds what a cache has of a hub, with its indexes, and counts what is read from it.
type hub struct {
	client.Client
	objects map[reflect.Type]map[types.NamespacedName]client.Object
	// byIndex are the objects of an index under a value.
	byIndex map[string][]client.Object
	read    int
	deleted []string
	// then is called once, when decisions have been read.
	then func()
}

func (h *hub) put(o client.Object) {
	kind := reflect.TypeOf(o).Elem()
	if h.objects[kind] == nil {
		h.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	h.objects[kind][client.ObjectKeyFromObject(o)] = o
}

func (h *hub) index(field string, values []string, o client.Object) {
	for _, value := range values {
		h.byIndex[field+"="+value] = append(h.byIndex[field+"="+value], o)
	}
}

// Get implements client.Reader.
func (h *hub) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.read++
	if m, is := into.(*metav1.PartialObjectMetadata); is {
		for kind, all := range h.objects {
			if found := all[key]; kind.Name() == m.Kind && found != nil {
				*m = metadataOf(found)
				return nil
			}
		}
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	found := h.objects[reflect.TypeOf(into).Elem()][key]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// List implements client.Reader.
func (h *hub) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	var items []runtime.Object
	switch {
	case o.FieldSelector != nil:
		for _, found := range h.byIndex[o.FieldSelector.String()] {
			items = append(items, found)
		}
	default:
		kind := reflect.TypeOf(list).Elem().Name()
		metadata, only := list.(*metav1.PartialObjectMetadataList)
		if only {
			kind = metadata.Kind
		}
		for t, all := range h.objects {
			for _, found := range all {
				if t.Name()+"List" == kind && (o.Namespace == "" || found.GetNamespace() == o.Namespace) &&
					(o.LabelSelector == nil || o.LabelSelector.Matches(labelsOf(found))) {
					if only {
						found = new(metadataOf(found))
					}
					items = append(items, found)
				}
			}
		}
	}
	h.read += len(items)
	err := meta.SetList(list, items)
	if _, decisions := list.(*clusterv1beta1.PlacementDecisionList); decisions && h.then != nil {
		then := h.then
		h.then = nil
		then()
	}
	return err
}

func metadataOf(o client.Object) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}}
}

// Delete implements client.Writer.
func (h *hub) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	h.deleted = append(h.deleted, o.GetNamespace())
	return nil
}

// Patch implements client.Writer.
func (h *hub) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

type labelled map[string]string

func labelsOf(o client.Object) labelled { return o.GetLabels() }

// Has implements labels.Labels.
func (l labelled) Has(key string) bool { _, has := l[key]; return has }

// Get implements labels.Labels.
func (l labelled) Get(key string) string { return l[key] }

// Lookup implements labels.Labels.
func (l labelled) Lookup(key string) (string, bool) { value, has := l[key]; return value, has }

// largeHub has add-ons on all of its clusters, which one Placement selects.
func largeHub(addons, clusters int) (*hub, *Reconciler, *clocktesting.FakePassiveClock) {
	h := &hub{objects: map[reflect.Type]map[types.NamespacedName]client.Object{}, byIndex: map[string][]client.Object{}}
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	placement.Status.NumberOfSelectedClusters = int32(clusters)
	h.put(placement)
	h.put(bindingOf("global"))
	for a := range addons {
		cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%02d", a), UID: "u"}}
		cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
		cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"},
		}}
		h.put(cma)
		h.index(addonapi.IndexPlacement, []string{"ns/p"}, cma)
	}
	for first := 0; first < clusters; first += 100 {
		page := pageOf("p", first/100+1)
		page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
		for n := first; n < min(first+100, clusters); n++ {
			cluster := fmt.Sprintf("c%04d", n)
			page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
			managed := clusterThat(metav1.ConditionTrue, noon().Add(-time.Hour))
			managed.Name = cluster
			h.put(managed)
			for a := range addons {
				addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
					Namespace: cluster, Name: fmt.Sprintf("a%02d", a),
					Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
				}}
				h.put(addon)
				h.index(addonapi.IndexName, []string{addon.Name}, addon)
			}
		}
		page.CreationTimestamp = metav1.NewTime(noon())
		h.put(page)
		h.index(addonapi.IndexCluster, addonapi.SelectedClusters(page), page)
	}
	clock := clocktesting.NewFakePassiveClock(noon())
	return h, &Reconciler{
		Client: h, Live: h, AddOns: addonapi.Client{Client: h}, Clock: clock, Workers: 1, Limit: Limit{Percent: 25, Clusters: 10},
		Placements: &fleet.Placements{Client: h, Clock: clock},
	}, clock
}

// raise calls a handler with an update and returns what it adds to the queue.
func raise(f handler.Funcs, older, newer client.Object) []ctrlreconcile.Request {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	defer q.ShutDown()
	f.UpdateFunc(context.Background(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, q)
	var added []ctrlreconcile.Request
	for q.Len() > 0 {
		request, _ := q.Get()
		q.Done(request)
		added = append(added, request)
	}
	return added
}

// dropLast drops the last cluster of the first page of Placement p.
func (h *hub) dropLast() (older, newer *clusterv1beta1.PlacementDecision) {
	key := types.NamespacedName{Namespace: "ns", Name: "p-decision-1"}
	older, _ = h.objects[reflect.TypeFor[clusterv1beta1.PlacementDecision]()][key].(*clusterv1beta1.PlacementDecision)
	newer = older.DeepCopy()
	newer.ResourceVersion += "x"
	// One in the middle, which is surely not about to move to another page.
	newer.Status.Decisions = append(newer.Status.Decisions[:50], newer.Status.Decisions[51:]...)
	h.put(newer)
	placement, _ := h.objects[reflect.TypeFor[clusterv1beta1.Placement]()][types.NamespacedName{Namespace: "ns", Name: "p"}].(*clusterv1beta1.Placement)
	placement = placement.DeepCopy()
	placement.Status.NumberOfSelectedClusters--
	h.put(placement)
	return older, newer
}

// Shows: hub/changed-only
func TestAChangeOfOneClusterCostsAsMuchOnALargeHubAsOnASmallOne(t *testing.T) {
	const addons = 5
	costs := map[int]int{}
	for _, clusters := range []int{200, 3000} {
		h, r, clock := largeHub(addons, clusters)
		fleetPass := func() {
			for a := range addons {
				_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{
					Name: fmt.Sprintf("a%02d", a),
				}})
				require.NoError(t, err)
			}
		}
		fleetPass() // All clusters are looked at once after a start.
		older, newer := h.dropLast()
		h.read = 0
		requests := raise(r.ofDecision(), older, newer)
		require.Len(t, requests, addons)
		for _, request := range requests {
			assert.Empty(t, request.Namespace, "nothing is installed")
		}
		fleetPass()
		clock.SetTime(noon().Add(fleet.FailoverPeriod))
		fleetPass()
		assert.Len(t, h.deleted, addons)
		costs[clusters] = h.read - 3*addons*len(h.objects[reflect.TypeFor[clusterv1beta1.PlacementDecision]()])
	}
	assert.Equal(t, costs[200], costs[3000], "reads, the PlacementDecisions aside")
	assert.Less(t, costs[3000], 20*addons)
}

// Shows: hub/removal-not-forgotten
func TestADecisionThatChangesDuringAPassIsNotForgotten(t *testing.T) {
	for sentence, earlier := range map[string]int{"the first pass after a start": 0, "a later pass": 1} {
		t.Run(sentence, func(t *testing.T) {
			h, r, clock := largeHub(1, 200)
			pass := func() {
				_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "a00"}})
				require.NoError(t, err)
			}
			for range earlier {
				pass()
			}
			var requests []ctrlreconcile.Request
			h.then = func() {
				older, newer := h.dropLast()
				requests = raise(r.ofDecision(), older, newer)
			}
			pass()
			require.Len(t, requests, 1, "the drop starts another pass")
			pass()
			clock.SetTime(noon().Add(fleet.FailoverPeriod))
			pass()
			assert.Equal(t, []string{"c0050"}, h.deleted)
		})
	}
}

func TestPlacementsThatAreEditedDuringAPassAreNotForgotten(t *testing.T) {
	h, r, clock := largeHub(1, 5)
	pass := func() {
		_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "a00"}})
		require.NoError(t, err)
	}
	none := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "q"}}
	none.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	page := pageOf("q", 1)
	page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "q"}
	page.CreationTimestamp = metav1.NewTime(noon())
	h.put(none)
	h.put(page)
	h.then = func() {
		older, _ := h.objects[reflect.TypeFor[addonv1alpha1.ClusterManagementAddOn]()][types.NamespacedName{Name: "a00"}].(*addonv1alpha1.ClusterManagementAddOn)
		newer := older.DeepCopy()
		newer.Spec.InstallStrategy.Placements[0].Name = "q"
		h.put(newer)
		assert.NotEmpty(t, raise(r.ofClusterManagementAddOn(), older, newer))
	}
	pass()
	pass()
	clock.SetTime(noon().Add(fleet.QuietPeriod))
	pass()
	assert.Len(t, h.deleted, 5)
}

// Shows: hub/agents-clocks
func TestTheClockOfAnAgentDecidesNothing(t *testing.T) {
	at := func(d time.Duration, status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := clusterThat(status, noon().Add(d))
		c.Name = "c0050"
		return c
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	defer q.ShutDown()
	for sentence, tc := range map[string]struct {
		offset time.Duration
		// outage reports whether the cluster was unavailable when it was dropped.
		outage bool
		want   []string
	}{
		"two hours ahead, it loses what it should lose":         {offset: 2 * time.Hour, want: []string{"c0050"}},
		"two hours behind, it loses what it should lose":        {offset: -2 * time.Hour, want: []string{"c0050"}},
		"two hours ahead, an outage does not uninstall from it": {offset: 2 * time.Hour, outage: true},
		"two hours behind, nor does it":                         {offset: -2 * time.Hour, outage: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h, r, clock := largeHub(1, 200)
			pass := func() {
				_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "a00"}})
				require.NoError(t, err)
			}
			well, silent := at(tc.offset, metav1.ConditionTrue), at(0, metav1.ConditionUnknown)
			h.put(well)
			r.ofCluster().CreateFunc(t.Context(), event.CreateEvent{Object: well}, q)
			pass()
			clock.SetTime(noon().Add(time.Minute))
			if tc.outage {
				h.put(silent)
				raise(r.ofCluster(), well, silent)
			}
			older, newer := h.dropLast()
			newer.CreationTimestamp = metav1.NewTime(clock.Now())
			raise(r.ofDecision(), older, newer)
			pass()
			if tc.outage {
				clock.SetTime(noon().Add(10 * time.Minute))
				back := at(10*time.Minute+tc.offset, metav1.ConditionTrue)
				h.put(back)
				raise(r.ofCluster(), silent, back)
			}
			pass()
			for range 3 {
				clock.SetTime(clock.Now().Add(2 * time.Minute))
				pass()
			}
			assert.Equal(t, tc.want, h.deleted)
		})
	}
}

// The hub manager watches clusters and decisions apart, so it may see a cluster come back after a decision that was
// written later. The API server wrote both.
func TestADecisionThatWasWrittenAfterAClusterCameBackCounts(t *testing.T) {
	silent, back := clusterThat(metav1.ConditionUnknown, noon()), clusterThat(metav1.ConditionTrue, noon())
	back.ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon()))}}
	for sentence, tc := range map[string]struct {
		seen, written time.Duration
		want          bool
	}{
		"in the same second":                     {seen: 700 * time.Millisecond, want: true},
		"a second later, seen before":            {seen: 2 * time.Second, written: time.Second, want: true},
		"earlier, while it was not available":    {seen: 0, written: -time.Second},
		"earlier, by a hub manager that is slow": {seen: -time.Minute, written: -time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			var m memory
			m.see(silent, back, noon().Add(tc.seen))
			assert.Equal(t, tc.want, droppedWhileAvailable(back, m.availableSince(back), noon().Add(tc.written)))
		})
	}
}

func TestWhatConcernsNobodyStartsNoPass(t *testing.T) {
	h, r, _ := largeHub(3, 200)
	for a := range 3 {
		_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("a%02d", a)}})
		require.NoError(t, err)
	}
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	decided := placement.DeepCopy()
	decided.Status.NumberOfSelectedClusters++
	assert.Empty(t, raise(r.ofPlacement(), placement, decided), "no cluster is unselected")
	decided.Generation++
	assert.Len(t, raise(r.ofPlacement(), placement, decided), 3, "an edit")

	cluster := clusterThat(metav1.ConditionTrue, noon())
	cluster.Name = "c0007"
	labelled := cluster.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	h.read = 0
	assert.Empty(t, raise(r.ofCluster(), cluster, labelled))
	assert.Empty(t, raise(r.ofCluster(), cluster, clusterThat(metav1.ConditionFalse, noon())), "it has no unselected add-on")
	assert.Zero(t, h.read)
	annotated := cluster.DeepCopy()
	annotated.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
	assert.Len(t, raise(r.ofCluster(), cluster, annotated), 3, "exactly the add-ons of this cluster")
	going := cluster.DeepCopy()
	going.DeletionTimestamp = new(metav1.NewTime(noon()))
	assert.Len(t, raise(r.ofCluster(), cluster, going), 3)

	addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c0007", Name: "a00"}}
	available := addon.DeepCopy()
	available.Status.Conditions = []metav1.Condition{{Type: "Available"}}
	assert.Empty(t, raise(r.ofAddOn(), addon, available), "its status")
	available.Annotations = map[string]string{names.AnnotationHostingCluster: "x"}
	assert.Len(t, raise(r.ofAddOn(), addon, available), 2, "a copied annotation")

	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a00"}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	edited := cma.DeepCopy()
	edited.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{}}
	assert.Empty(t, raise(r.ofClusterManagementAddOn(), cma, edited), "its configurations")
	edited.Annotations = map[string]string{names.AnnotationConfirmRemoval: "x"}
	assert.Len(t, raise(r.ofClusterManagementAddOn(), cma, edited), 1, "a confirmation")
	edited.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"},
	}}
	assert.Len(t, raise(r.ofClusterManagementAddOn(), cma, edited), 201, "its placements: all clusters, and the removal")
	assert.IsType(t, &clusterv1.ManagedCluster{}, cluster)
}

// BenchmarkOneClusterLeaves measures the passes after a decision drops one of 3,000 clusters of 20 add-ons.
func BenchmarkOneClusterLeaves(b *testing.B) {
	h, r, clock := largeHub(20, 3000)
	pass := func() {
		for a := range 20 {
			_, err := r.Reconcile(b.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("a%02d", a)}})
			require.NoError(b, err)
		}
	}
	pass()
	full, _ := h.dropLast()
	for b.Loop() {
		h.put(full.DeepCopy())
		older, newer := h.dropLast()
		raise(r.ofDecision(), older, newer)
		pass()
		clock.SetTime(clock.Now().Add(fleet.QuietPeriod))
		pass()
	}
}

// An add-on is created, by an earlier version or from a backup, on a cluster that no placement selects: no handler sees
// a cluster lose it.
func TestAPassNotesAnAddOnThatNoPlacementSelects(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.passes(4 * time.Second) // the first one looks at all add-ons
	managed := clusterThat(metav1.ConditionTrue, noon().Add(-time.Hour))
	managed.Name, managed.Spec.HubAcceptsClient = "c9", true
	require.NoError(t, h.Create(t.Context(), managed))
	require.NoError(t, h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "c9", Labels: map[string]string{names.LabelClusterName: "c9"},
	}}))
	require.NoError(t, h.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c9", Name: "hello", UID: "c9", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
	}}))
	_, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "c9", Name: "hello"}})
	require.NoError(t, err)
	assert.Contains(t, h.r.memory.unselected("hello"), "c9")
}
