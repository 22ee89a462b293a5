package install

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

// ticking is a real clock: time passes between two looks at it.
type ticking struct {
	mu sync.Mutex
	at time.Time
}

func (c *ticking) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Microsecond)
	return c.at
}
func (c *ticking) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *ticking) step(d time.Duration)            { c.mu.Lock(); c.at = c.at.Add(d); c.mu.Unlock() }

// heldHub: the removal from 60 of 200 clusters is held, and the Placement was edited since without another decision.
func heldHub() (*hub, *Reconciler, *ticking, *clusterv1beta1.Placement, []*clusterv1beta1.PlacementDecision) {
	h, r, _ := largeHub(1, 200)
	clock := &ticking{at: noon().Add(time.Hour)}
	r.Clock, r.Placements = clock, &fleet.Placements{Client: h, Clock: clock, Own: true}
	pageType, placementType := reflect.TypeFor[clusterv1beta1.PlacementDecision](), reflect.TypeFor[clusterv1beta1.Placement]()
	var pages []*clusterv1beta1.PlacementDecision
	for key, o := range h.objects[pageType] {
		page, is := o.(*clusterv1beta1.PlacementDecision)
		if !is {
			continue
		}
		if key.Name == "p-decision-1" {
			page.Status.Decisions = page.Status.Decisions[60:]
		}
		pages = append(pages, page)
	}
	placement, _ := h.objects[placementType][types.NamespacedName{Namespace: "ns", Name: "p"}].(*clusterv1beta1.Placement)
	placement.Generation = 2
	placement.Status.NumberOfSelectedClusters = 140
	placement.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied, ObservedGeneration: 2}}
	cma := h.objects[reflect.TypeFor[addonv1alpha1.ClusterManagementAddOn]()][types.NamespacedName{Name: "a00"}]
	cma.SetAnnotations(map[string]string{
		names.AnnotationRemovalHeld:  "no placement selects 60 of 200 clusters any more ...",
		names.AnnotationRemovalState: removalState{Intents: intents("before the edit")}.encode(),
	})
	return h, r, clock, placement, pages
}

func fleetPasses(t *testing.T, r *Reconciler, clock *ticking) {
	t.Helper()
	for range 3 {
		_, err := r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "a00"}})
		require.NoError(t, err)
		clock.step(3 * time.Minute)
	}
}

// A start of the hub manager releases what is held: it takes its own first look for a decision after the edit.
func TestARestartReleasesNothingThatIsHeld(t *testing.T) {
	h, r, clock, placement, pages := heldHub()
	placement.Status.Conditions = append(placement.Status.Conditions, fleet.Mark(2, pages))
	fleetPasses(t, r, clock)
	assert.Empty(t, h.deleted, "nobody decided anything since the edit")
}

// The first mark after an upgrade (or any other text of the mark) releases what is held.
func TestTheFirstMarkReleasesNothingThatIsHeld(t *testing.T) {
	h, r, clock, placement, pages := heldHub()
	// The rollout looked first, so that 1a does not apply.
	_, err := r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
	require.NoError(t, err)
	clock.step(time.Second)
	fleetPasses(t, r, clock)
	require.Empty(t, h.deleted, "there is no mark yet")
	marked := placement.DeepCopy()
	marked.Status.Conditions = append(marked.Status.Conditions, fleet.Mark(2, pages))
	h.put(marked)
	fleetPasses(t, r, clock)
	assert.Empty(t, h.deleted, "the PlacementDecisions are those of before")
}

// A write of the metadata of a page (a storage migration, a label of another tool) is no decision.
func TestATouchedPageReleasesNothingThatIsHeld(t *testing.T) {
	h, r, clock, placement, pages := heldHub()
	placement.Status.Conditions = append(placement.Status.Conditions, fleet.Mark(2, pages))
	_, err := r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
	require.NoError(t, err)
	clock.step(time.Second)
	fleetPasses(t, r, clock)
	require.Empty(t, h.deleted)
	touched := pages[0].DeepCopy()
	touched.ResourceVersion += "x"
	h.put(touched)
	fleetPasses(t, r, clock)
	assert.Empty(t, h.deleted, "the PlacementDecisions are those of before")
}

// The hub manager creates the sets default and global, and changes them back: nobody edited anything, and the set
// has the same clusters as before.
func TestASetThatTheHubManagerKeepsIsNoEdit(t *testing.T) {
	for _, name := range []string{clustersets.Default, clustersets.Global} {
		binding := bindingOf(name)
		intent := func(set *clusterv1beta2.ManagedClusterSet) map[string]string {
			return intentsOf([]*fleet.Decisions{decided("p", "a").known()},
				map[string][]*clusterv1beta2.ManagedClusterSetBinding{"ns": {binding}}, map[string]*clusterv1beta2.ManagedClusterSet{name: set})
		}
		kept, _ := clustersets.Kept(name, nil)
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Generation: 1}}
		set.Spec.ClusterSelector = kept
		assert.Equal(t, intent(nil), intent(set), "%s, which the hub manager created", name)
		back := set.DeepCopy()
		back.Generation = 3
		assert.Equal(t, intent(set), intent(back), "%s, which the hub manager changed back", name)
	}
}

// End to end: an upgrade creates the set, and the removal of a crowd is not held.
func TestTheLimitHoldsWhenTheHubManagerCreatesASet(t *testing.T) {
	h, r, clock, placement, pages := heldHub()
	placement.Status.Conditions = append(placement.Status.Conditions, fleet.Mark(2, pages))
	binding := bindingOf("global")
	h.put(binding)
	d, err := r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
	require.NoError(t, err)
	before := intentsOf([]*fleet.Decisions{d},
		map[string][]*clusterv1beta2.ManagedClusterSetBinding{"ns": {binding}}, nil)
	cma := h.objects[reflect.TypeFor[addonv1alpha1.ClusterManagementAddOn]()][types.NamespacedName{Name: "a00"}]
	cma.SetAnnotations(map[string]string{names.AnnotationRemovalState: removalState{Intents: before}.encode()})
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global", UID: "u", Generation: 1}}
	set.Spec.ClusterSelector, _ = clustersets.Kept("global", nil)
	h.put(set)
	fleetPasses(t, r, clock)
	assert.Empty(t, h.deleted, "60 of 200 clusters, and no person edited anything")
}

// Both together: nobody edits anything. The upgrade creates set global, which counts as an edit, and writes the
// first mark, which counts as a decision after it: what waits for a person is uninstalled.
func TestAnUpgradeReleasesNothingThatIsHeld(t *testing.T) {
	for _, upgraded := range []bool{false, true} {
		h, r, clock, placement, pages := heldHub()
		placement.Generation = 1
		placement.Status.Conditions[0].ObservedGeneration = 1
		binding := bindingOf("global")
		h.put(binding)
		d, err := r.Placements.Decisions(t.Context(), types.NamespacedName{Namespace: "ns", Name: "p"})
		require.NoError(t, err)
		intent := intentsOf([]*fleet.Decisions{d},
			map[string][]*clusterv1beta2.ManagedClusterSetBinding{"ns": {binding}}, nil)
		cma := h.objects[reflect.TypeFor[addonv1alpha1.ClusterManagementAddOn]()][types.NamespacedName{Name: "a00"}]
		annotations := cma.GetAnnotations()
		annotations[names.AnnotationRemovalState] = removalState{Intents: intent}.encode()
		cma.SetAnnotations(annotations)
		if upgraded {
			set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global", UID: "u", Generation: 1}}
			set.Spec.ClusterSelector, _ = clustersets.Kept("global", nil)
			h.put(set)
		}
		clock.step(time.Second)
		fleetPasses(t, r, clock)
		marked := placement.DeepCopy()
		marked.Status.Conditions = append(marked.Status.Conditions, fleet.Mark(1, pages))
		h.put(marked)
		fleetPasses(t, r, clock)
		assert.Empty(t, h.deleted, "upgraded: %t", upgraded)
	}
}
