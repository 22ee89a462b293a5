package clocks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// installer is the reconciler of installation, called by hand for one add-on. The test plays the placement controller.
type installer struct {
	*testing.T
	suite.Reconciler
	// name is that of the add-on, and of its Placement in namespace default; clusters begin with it.
	name   string
	live   *suite.Live
	events chan string
}

// newInstaller creates an add-on that one Placement installs on clusters that exist.
func newInstaller(t *testing.T, clusters int) *installer {
	t.Helper()
	live := suite.NewLive(t, plane.Admin())
	require.NoError(t, addonapi.Client{Client: live}.Index(t.Context(), live))
	i := &installer{T: t, name: suite.UniqueName("inst"), live: live}
	i.Clock = clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	i.restart()
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: i.name}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: "default", Name: i.name},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), cma))
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: i.name},
	}))
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "global"}}
	binding.Spec.ClusterSet = "global"
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), binding)))
	for n := range clusters {
		name := i.cluster(n)
		require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{names.LabelClusterName: name},
		}}))
		require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}))
		i.available(n, metav1.ConditionTrue)
	}
	i.Step(time.Hour) // Away from the clock of the API server.
	return i
}

// restart starts the hub manager again.
func (i *installer) restart() {
	recorder := events.NewFakeRecorder(100)
	i.events = recorder.Events
	r := &install.Reconciler{
		Client: i.live, Live: i.live, AddOns: addonapi.Client{Client: i.live}, Recorder: recorder, Clock: i.Clock, Workers: 2,
		Limit: install.Limit{Percent: 25, Clusters: 3}, TrustAsOCM: true,
		Placements: &fleet.Placements{Client: i.live, Clock: i.Clock},
	}
	i.Reconciler = suite.Reconciler{Client: i.live, Clock: i.Clock, Reconcile: r.Reconcile}
}

func (i *installer) cluster(n int) string { return fmt.Sprintf("%s-%02d", i.name, n) }

// selects writes a PlacementDecision with the clusters.
func (i *installer) selects(page int, clusters ...int) {
	i.Helper()
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprintf("%s-decision-%d", i.name, page),
		Labels: map[string]string{names.LabelPlacement: i.name},
	}}
	require.NoError(i, client.IgnoreAlreadyExists(plane.Client.Create(i.Context(), d)))
	require.NoError(i, plane.Client.Get(i.Context(), client.ObjectKeyFromObject(d), d))
	d.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, n := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: i.cluster(n)})
	}
	require.NoError(i, plane.Client.Status().Update(i.Context(), d))
}

// reports writes the status of the Placement.
func (i *installer) reports(clusters int, pages ...int) {
	i.Helper()
	p := i.placement()
	p.Status.NumberOfSelectedClusters = int32(clusters)
	p.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{ClustersCount: int32(clusters)}}
	for _, page := range pages {
		p.Status.DecisionGroups[0].Decisions = append(p.Status.DecisionGroups[0].Decisions,
			fmt.Sprintf("%s-decision-%d", i.name, page))
	}
	require.NoError(i, plane.Client.Status().Update(i.Context(), p))
}

func (i *installer) placement() *clusterv1beta1.Placement {
	i.Helper()
	var p clusterv1beta1.Placement
	require.NoError(i, plane.Client.Get(i.Context(), types.NamespacedName{Namespace: "default", Name: i.name}, &p))
	return &p
}

func (i *installer) available(n int, status metav1.ConditionStatus) {
	i.Helper()
	var c clusterv1.ManagedCluster
	require.NoError(i, plane.Client.Get(i.Context(), client.ObjectKey{Name: i.cluster(n)}, &c))
	c.Spec.Taints = nil
	if status != metav1.ConditionTrue {
		c.Spec.Taints = []clusterv1.Taint{{
			Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
		}}
	}
	require.NoError(i, plane.Client.Update(i.Context(), &c))
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test",
		LastTransitionTime: metav1.NewTime(i.Clock.Now()),
	}}
	require.NoError(i, plane.Client.Status().Update(i.Context(), &c))
}

// install calls the reconciler for clusters, as their events do.
func (i *installer) install(clusters ...int) {
	i.Helper()
	for _, n := range clusters {
		i.Settle(i, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: i.cluster(n), Name: i.name}})
	}
}

// remove calls the reconciler for the removal of the add-on, and returns when it wants to be called again.
func (i *installer) remove() time.Duration {
	i.Helper()
	return i.Settle(i, reconcile.Request{NamespacedName: types.NamespacedName{Name: i.name}})
}

// installed are the clusters that have the add-on.
func (i *installer) installed() []int {
	i.Helper()
	var list addonv1alpha1.ManagedClusterAddOnList
	require.NoError(i, plane.Client.List(i.Context(), &list))
	found := []int{}
	for _, addon := range list.Items {
		var n int
		if addon.Name == i.name && addon.DeletionTimestamp.IsZero() {
			_, err := fmt.Sscanf(strings.TrimPrefix(addon.Namespace, i.name+"-"), "%d", &n)
			require.NoError(i, err)
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

func (i *installer) annotations() map[string]string {
	i.Helper()
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(i, plane.Client.Get(i.Context(), client.ObjectKey{Name: i.name}, &cma))
	return cma.Annotations
}

func (i *installer) annotate(key, value string) {
	i.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	require.NoError(i, err)
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: i.name}}
	require.NoError(i, plane.Client.Patch(i.Context(), cma, client.RawPatch(types.MergePatchType, body)))
}

// TestAnAddOnWaitsForQuietDecisions follows the decisions of another placement controller to the second.
func TestAnAddOnWaitsForQuietDecisions(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 3)
	i.selects(1, 0, 1, 2)
	i.reports(3, 1)
	i.install(0, 1, 2)
	assert.Equal(t, []int{0, 1, 2}, i.installed())
	i.remove()

	i.selects(1, 0, 2)
	i.install(1)
	i.remove()
	i.Step(time.Hour)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed(), "the status does not agree")
	i.reports(2, 1)
	assert.Equal(t, fleet.QuietPeriod, i.remove())
	i.Step(fleet.QuietPeriod - time.Second)
	assert.Equal(t, time.Second, i.remove())
	i.restart()
	assert.Equal(t, fleet.QuietPeriod, i.remove(), "a hub manager that just started has not seen them quiet")
	i.Step(fleet.QuietPeriod)
	i.remove()
	assert.Equal(t, []int{0, 2}, i.installed())
}

// TestAClusterBetweenTwoPagesWaitsForAnotherController has a placement controller that stops between two writes.
//
// Shows: invariants/selected-stays
func TestAClusterBetweenTwoPagesWaitsForAnotherController(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 5)
	p := i.placement()
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.IntVal = 2
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.Type = 0
	require.NoError(t, plane.Client.Update(t.Context(), p))
	i.selects(1, 1, 2)
	i.reports(2, 1)
	i.install(1, 2)
	i.remove()

	// Cluster 0 pushes cluster 2 out of the page, and the next page is not written yet.
	i.selects(1, 0, 1)
	i.install(0, 2)
	assert.Equal(t, fleet.FailoverPeriod, i.remove())
	i.Step(fleet.FailoverPeriod - time.Second)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed())
	i.selects(2, 2)
	i.reports(3, 1, 2)
	i.remove()
	i.Step(time.Hour)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed())
}

// Shows: hub/unreachable-keeps
func TestAnUnreachableClusterKeepsItsAddOnUntilItIsDecidedAgain(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 3)
	i.selects(1, 0, 1, 2)
	i.reports(3, 1)
	i.install(0, 1, 2)
	i.remove()
	i.available(1, metav1.ConditionUnknown)
	i.selects(1, 0, 2)
	i.reports(2, 1)
	i.install(1)
	i.remove()
	i.Step(24 * time.Hour)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed())
	require.NotEmpty(t, i.events)
	assert.Contains(t, <-i.events, "their clusters are not available")

	i.restart()
	i.available(1, metav1.ConditionTrue)
	i.remove()
	i.Step(time.Hour)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed(), "the decisions are older than its return")
	assert.Contains(t, <-i.events, "no placement was decided since")

	i.selects(1, 0, 1, 2)
	i.reports(3, 1)
	i.install(1)
	i.remove()
	assert.Equal(t, []int{0, 1, 2}, i.installed())
}

// TestAHeldRemovalIsConfirmedOnceAndSurvivesARestart holds a removal that nobody explains.
//
// Shows: hub/removal-limit
func TestAHeldRemovalIsConfirmedOnceAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 8)
	i.selects(1, 0, 1, 2, 3, 4, 5, 6, 7)
	i.reports(8, 1)
	i.install(0, 1, 2, 3, 4, 5, 6, 7)
	i.remove()
	i.selects(1, 0, 1, 2, 3)
	i.reports(4, 1)
	i.install(4, 5, 6, 7)
	i.remove()
	i.Step(fleet.QuietPeriod)
	i.remove()
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	assert.Equal(t, all, i.installed())
	held := i.annotations()[names.AnnotationRemovalHeld]
	assert.Contains(t, held, "stopped selecting 4 clusters")
	assert.Contains(t, <-i.events, "RemovalHeld")
	_, value, _ := strings.Cut(held, names.AnnotationConfirmRemoval+"=")
	value, _, _ = strings.Cut(value, " ")

	i.restart()
	i.remove()
	i.Step(time.Hour)
	i.remove()
	assert.Equal(t, all, i.installed(), "time does not release it")
	i.annotate(names.AnnotationConfirmRemoval, "other")
	i.remove()
	assert.Equal(t, all, i.installed())
	i.annotate(names.AnnotationConfirmRemoval, value)
	i.remove()
	assert.Equal(t, all[:4], i.installed())
	assert.NotContains(t, i.annotations(), names.AnnotationRemovalHeld)
	assert.NotContains(t, i.annotations(), names.AnnotationConfirmRemoval)

	// An edit of the Placement explains as much.
	p := i.placement()
	p.Spec.NumberOfClusters = new(int32(0))
	require.NoError(t, plane.Client.Update(t.Context(), p))
	i.restart()
	i.selects(1)
	i.reports(0, 1)
	i.remove()
	i.Step(fleet.QuietPeriod)
	i.remove()
	assert.Empty(t, i.installed())
}

// Shows: hub/waits-for-namespace
func TestAnAddOnWaitsWithoutRetryWhileTheNamespaceGoes(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 1)
	i.selects(1, 0)
	i.reports(1, 1)
	require.NoError(t, plane.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.cluster(0)}}))
	writes := i.Client.Writes()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: i.cluster(0), Name: i.name}}
	assert.Zero(t, i.Once(t, request), "the event of the namespace starts the next pass")
	assert.Equal(t, writes, i.Client.Writes())
	assert.Empty(t, i.installed())
}

// Shows: hub/annotations-in-step
func TestAnnotationsOfAClusterAreRepairedAfterARestart(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, 1)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: i.cluster(0)}}
	set := func(o client.Object, value string) {
		require.NoError(t, plane.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":`+value+`}}`))))
	}
	const hosting, values = names.AnnotationHostingCluster, "addon.open-cluster-management.io/values"
	set(cluster, `{"`+hosting+`":"a"}`)
	i.selects(1, 0)
	i.reports(1, 1)
	i.install(0)
	addon := func() map[string]string {
		var have addonv1alpha1.ManagedClusterAddOn
		require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Namespace: i.cluster(0), Name: i.name}, &have))
		return have.Annotations
	}
	assert.Equal(t, "a", addon()[hosting])
	mine := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: i.cluster(0), Name: i.name}}
	set(mine, `{"`+values+`":"{}"}`)
	set(cluster, `{"`+hosting+`":"b","`+values+`":"theirs"}`)
	i.restart()
	i.install(0)
	assert.Equal(t, "b", addon()[hosting])
	assert.Equal(t, "{}", addon()[values])
	set(cluster, `{"`+hosting+`":null}`)
	i.install(0)
	assert.NotContains(t, addon(), hosting)
	assert.Equal(t, "{}", addon()[values])
}
