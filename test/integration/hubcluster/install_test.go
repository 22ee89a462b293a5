package hubcluster_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

func TestAPlacementDecidesAndKeepsWhatItSelected(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pick-b", "pick-c"} {
		createLabelled(t, name, map[string]string{"pick": "yes"})
	}
	createPlacement(t, "pick", nil, predicate(map[string]string{"pick": "yes"}), func(p *clusterv1beta1.Placement) {
		p.Spec.NumberOfClusters = new(int32(2))
	})
	expectSelected(t, "pick", "pick-b", "pick-c")
	expectPlacement(t, "pick", clusterv1beta1.PlacementConditionSatisfied, metav1.ConditionTrue, "AllDecisionsScheduled")
	expectPlacement(t, "pick", clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionFalse, "Succeedconfigured")

	page := pages(t, "pick")[0]
	assert.Equal(t, "pick-decision-1", page.Name)
	assert.Equal(t, map[string]string{
		names.LabelPlacement: "pick", names.LabelDecisionGroupIndex: "0", names.LabelDecisionGroupName: "",
	}, page.Labels)
	assert.NotNil(t, metav1.GetControllerOf(&page))
	placement := getPlacement(t, "pick")
	assert.Equal(t, []clusterv1beta1.DecisionGroupStatus{{
		Decisions: []string{"pick-decision-1"}, ClustersCount: 2,
	}}, placement.Status.DecisionGroups)

	createLabelled(t, "pick-a", map[string]string{"pick": "yes"})
	suite.Consistently(t, time.Second, func() error { return selected(t, "pick", "pick-b", "pick-c") })
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, "pick-b")))
	expectSelected(t, "pick", "pick-a", "pick-c")
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, "pick-a")))
	expectPlacement(t, "pick", clusterv1beta1.PlacementConditionSatisfied, metav1.ConditionFalse, "NotAllDecisionsScheduled")
}

// Shows: hub/too-much-asked
func TestAPlacementThatAsksForTooMuchKeepsItsDecisions(t *testing.T) {
	t.Parallel()
	createLabelled(t, "odd", map[string]string{"odd": "yes"})
	createPlacement(t, "odd", nil, predicate(map[string]string{"odd": "yes"}))
	expectSelected(t, "odd", "odd")
	patch(t, getPlacement(t, "odd"), `{"spec":{"sortBy":"Score"}}`)
	expectPlacement(t, "odd", clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionTrue, "Misconfigured")
	have := meta.FindStatusCondition(getPlacement(t, "odd").Status.Conditions,
		clusterv1beta1.PlacementConditionMisconfigured)
	assert.Contains(t, have.Message, "spec.sortBy")
	require.NoError(t, selected(t, "odd", "odd"))
}

// Shows: hub/selects
func TestAPlacementSelectsOnlyFromSetsThatAreBoundToItsNamespace(t *testing.T) {
	t.Parallel()
	createLabelled(t, "bound-a", map[string]string{"bound": "yes", clusterv1beta2.ClusterSetLabel: "bound-blue"})
	createLabelled(t, "bound-b", map[string]string{"bound": "yes"})
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})))
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "bound"}}
	placement.Spec.Predicates = predicate(map[string]string{"bound": "yes"})
	eventuallyCreate(t, plane.Client, placement)
	selects := func(reason string, want ...string) {
		t.Helper()
		suite.Eventually(t, func() error {
			var have clusterv1beta1.Placement
			if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(placement), &have); err != nil {
				return err
			}
			c := meta.FindStatusCondition(have.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			if c == nil {
				return errors.New("no condition")
			}
			var page clusterv1beta1.PlacementDecision
			key := client.ObjectKey{Namespace: "tenant", Name: "bound-decision-1"}
			if err := plane.Client.Get(t.Context(), key, &page); err != nil {
				return err
			}
			var names []string
			for _, d := range page.Status.Decisions {
				names = append(names, d.ClusterName)
			}
			return errors.Join(equal(reason, c.Reason), equal(strings.Join(want, ","), strings.Join(names, ",")))
		})
	}
	selects("NoManagedClusterSetBindings")
	bindSet(t, "tenant", "bound-blue") // A binding may come before its set.
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "bound-blue"}}
	require.NoError(t, plane.Client.Create(t.Context(), set))
	selects("AllDecisionsScheduled", "bound-a")
	bindSet(t, "tenant", "global")
	selects("AllDecisionsScheduled", "bound-a", "bound-b")
	patch(t, placement, `{"spec":{"clusterSets":["bound-blue","red"]}}`)
	selects("AllDecisionsScheduled", "bound-a")
	require.NoError(t, plane.Client.Delete(t.Context(), set))
	selects("NoIntersection")
}

func TestAPlacementOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	createLabelled(t, "foreign-a", map[string]string{"foreign": "yes"})
	createPlacement(t, "foreign", map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"},
		predicate(map[string]string{"foreign": "yes"}))
	suite.Consistently(t, time.Second, func() error { return equal(0, len(pages(t, "foreign"))) })
	assert.Empty(t, getPlacement(t, "foreign").Status.Conditions)
}

// Shows: hub/slices
func TestManyClustersFillSeveralPages(t *testing.T) {
	t.Parallel()
	var want []string
	for i := range 130 {
		name := fmt.Sprintf("many-%03d", i)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"many": "yes"}}}
		cluster.Spec.HubAcceptsClient = true
		eventuallyCreate(t, plane.Client, cluster)
		want = append(want, name)
	}
	createPlacement(t, "many", nil, predicate(map[string]string{"many": "yes"}), unreachableToo)
	expectSelected(t, "many", want...)
	require.Len(t, pages(t, "many"), 2)
	patch(t, getPlacement(t, "many"), `{"spec":{"numberOfClusters":20}}`)
	expectSelected(t, "many", want[:20]...)
	suite.Eventually(t, func() error { return equal(1, len(pages(t, "many"))) })
}

// Shows: hub/follows-placements, hub/removal-matrix
func TestAnAddOnFollowsItsPlacements(t *testing.T) {
	t.Parallel()
	createLabelled(t, "inst-a", map[string]string{"inst": "one"})
	createLabelled(t, "inst-b", map[string]string{"inst": "one"})
	createLabelled(t, "inst-c", map[string]string{"inst": "two"})
	patch(t, getCluster(t, "inst-a"), `{"metadata":{"annotations":{
		"addon.open-cluster-management.io/hosting-cluster-name":"host",
		"addon.open-cluster-management.io/values":"{}",
		"addon.open-cluster-management.iox/no":"no"}}}`)
	// They tolerate what a cluster has before it is available for the first time: what drops a cluster in the second in
	// which that goes counts a minute later.
	createPlacement(t, "inst-one", nil, predicate(map[string]string{"inst": "one"}), unreachableToo)
	createPlacement(t, "inst-two", nil, predicate(map[string]string{"inst": "two"}), unreachableToo)
	expectSelected(t, "inst-one", "inst-a", "inst-b")
	createAddon(t, "follow", nil, "inst-one", "inst-two")
	expectInstalled(t, "follow", "inst-a", "inst-b", "inst-c")

	addon := getAddon(t, "inst-a", "follow")
	assert.Equal(t, "{}", addon.Annotations["addon.open-cluster-management.io/values"])
	assert.NotContains(t, addon.Annotations, "addon.open-cluster-management.io/hosting-cluster-name")
	assert.NotContains(t, addon.Annotations, "addon.open-cluster-management.iox/no")
	owner := metav1.GetControllerOf(addon)
	require.NotNil(t, owner)
	assert.Equal(t, "addon.open-cluster-management.io/v1beta1", owner.APIVersion)
	assert.Equal(t, "ClusterManagementAddOn", owner.Kind)

	require.NoError(t, plane.Client.Delete(t.Context(), getAddon(t, "inst-b", "follow")))
	suite.Eventually(t, func() error {
		var again addonv1alpha1.ManagedClusterAddOn
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "inst-b", Name: "follow"}, &again)
		return errors.Join(err, equal(true, again.DeletionTimestamp.IsZero()))
	})
	patch(t, getCluster(t, "inst-b"), `{"metadata":{"labels":{"inst":"none"}}}`)
	expectInstalled(t, "follow", "inst-a", "inst-c")

	createMine(t, "inst-b", "follow")
	suite.Eventually(t, suite.True("it gets its owner nevertheless", func() bool {
		return metav1.GetControllerOf(getAddon(t, "inst-b", "follow")) != nil
	}))
	suite.Consistently(t, time.Second, func() error { return installed(t, "follow", "inst-a", "inst-b", "inst-c") })

	require.NoError(t, plane.Client.Delete(t.Context(), getPlacement(t, "inst-two")))
	suite.Eventually(t, func() error { return equal(0, len(pages(t, "inst-two"))) })
	suite.Consistently(t, time.Second, func() error { return installed(t, "follow", "inst-a", "inst-b", "inst-c") })
	suite.Eventually(t, func() error { return told(t, "follow", "placement default/inst-two does not exist") })

	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: "follow"}, &cma))
	patch(t, &cma, `{"spec":{"installStrategy":{"placements":[{"namespace":"default","name":"inst-one"}]}}}`)
	expectInstalled(t, "follow", "inst-a", "inst-b")
	patch(t, &cma, `{"spec":{"installStrategy":{"type":"Manual"}}}`)
	patch(t, getCluster(t, "inst-a"), `{"metadata":{"labels":{"inst":"none"}}}`)
	suite.Consistently(t, time.Second, func() error { return installed(t, "follow", "inst-a", "inst-b") })
}

// Shows: hub/owner-set
func TestAManualAddOnGetsItsOwnerAndAnAddOnOfSomebodyElseDoesNot(t *testing.T) {
	t.Parallel()
	createLabelled(t, "manual", nil)
	createAddon(t, "by-hand", nil)
	createMine(t, "manual", "by-hand")
	createAddon(t, "self", map[string]string{names.AnnotationLifecycle: "self"})
	createMine(t, "manual", "self")
	suite.Eventually(t, func() error {
		return equal(true, metav1.GetControllerOf(getAddon(t, "manual", "by-hand")) != nil)
	})
	suite.Consistently(t, time.Second, func() error { return equal(0, len(getAddon(t, "manual", "self").OwnerReferences)) })
}

// Shows: hub/page-by-page
func TestDecisionsThatAreWrittenPageByPageUninstallNothingThatStays(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"paged-a", "paged-b", "paged-c"} {
		createLabelled(t, name, nil)
	}
	createPlacement(t, "paged", map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}, nil)
	writePage(t, "paged-x", "paged-a", "paged-b")
	writePage(t, "paged-y", "paged-c")
	createAddon(t, "paged", nil, "paged")
	expectInstalled(t, "paged", "paged-a", "paged-b", "paged-c")
	moving := getAddon(t, "paged-b", "paged").UID

	// Cluster paged-b moves to the other page, and paged-c goes: for five minutes it may be on its way to a third one.
	writePage(t, "paged-x", "paged-a")
	writePage(t, "paged-y", "paged-b")
	suite.Consistently(t, fleet.QuietPeriod+time.Second, func() error {
		return installed(t, "paged", "paged-a", "paged-b", "paged-c")
	})
	writePage(t, "paged-x", "paged-a", "paged-b")
	require.NoError(t, plane.Client.Delete(t.Context(), &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "paged-y",
	}}))
	// Without a status, one page of a new Placement may be one of several.
	var placement clusterv1beta1.Placement
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "paged"}, &placement))
	placement.Status.NumberOfSelectedClusters = 2
	require.NoError(t, plane.Client.Status().Update(t.Context(), &placement))
	expectInstalled(t, "paged", "paged-a", "paged-b")
	assert.Equal(t, moving, getAddon(t, "paged-b", "paged").UID)
}

// Shows: hub/waits-for-acceptance
func TestAnAddOnWaitsForTheClusterToBeAccepted(t *testing.T) {
	t.Parallel()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "waits", Labels: map[string]string{"waits": "y"}}}
	eventuallyCreate(t, plane.Client, cluster)
	createPlacement(t, "waits", nil, predicate(map[string]string{"waits": "y"}), unreachableToo)
	createAddon(t, "waits", nil, "waits")
	createLabelled(t, "waits-not", map[string]string{"waits": "y"})
	expectSelected(t, "waits", "waits-not")
	expectInstalled(t, "waits", "waits-not")
	accept(t, "waits", true)
	expectInstalled(t, "waits", "waits", "waits-not")
}

type option = func(*clusterv1beta1.Placement)

// unreachableToo lets a Placement select clusters that have no agent, whatever taint they have for that.
func unreachableToo(p *clusterv1beta1.Placement) {
	p.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
}

func predicate(labels map[string]string) []clusterv1beta1.ClusterPredicate {
	return []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: labels},
	}}}
}

func createLabelled(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	cluster.Spec.HubAcceptsClient = true
	eventuallyCreate(t, plane.Client, cluster)
	suite.Eventually(t, func() error {
		return plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
	})
	setAvailable(t, plane.Client, name, metav1.ConditionTrue)
}

func createPlacement(
	t *testing.T, name string, annotations map[string]string, predicates []clusterv1beta1.ClusterPredicate, opts ...option,
) {
	t.Helper()
	bindSet(t, "default", "global")
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Annotations: annotations,
	}}
	placement.Spec.Predicates = predicates
	for _, opt := range opts {
		opt(placement)
	}
	eventuallyCreate(t, plane.Client, placement)
}

// bindSet binds a set of clusters to a namespace, unless it is.
func bindSet(t *testing.T, namespace, set string) {
	t.Helper()
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}}
	binding.Spec.ClusterSet = set
	suite.Eventually(t, func() error {
		return client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), binding.DeepCopy()))
	})
}

func getPlacement(t *testing.T, name string) *clusterv1beta1.Placement {
	t.Helper()
	var placement clusterv1beta1.Placement
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &placement))
	return &placement
}

func pages(t *testing.T, placement string) []clusterv1beta1.PlacementDecision {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	require.NoError(t, plane.Client.List(t.Context(), &list, client.InNamespace("default"),
		client.MatchingLabels{names.LabelPlacement: placement}))
	return list.Items
}

func selected(t *testing.T, placement string, want ...string) error {
	t.Helper()
	var have []string
	for _, page := range pages(t, placement) {
		for _, decision := range page.Status.Decisions {
			have = append(have, decision.ClusterName)
		}
	}
	slices.Sort(have)
	return errors.Join(equal(fmt.Sprint(want), fmt.Sprint(have)))
}

func expectSelected(t *testing.T, placement string, want ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return cmp.Or(selected(t, placement, want...),
			equal(len(want), int(getPlacement(t, placement).Status.NumberOfSelectedClusters)))
	})
}

func expectPlacement(t *testing.T, name, kind string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	suite.Eventually(t, func() error {
		have := getPlacement(t, name).Status.Conditions
		if c := meta.FindStatusCondition(have, kind); c != nil && c.Status == status && c.Reason == reason {
			return nil
		}
		return fmt.Errorf("%s is not %s/%s: %+v", kind, status, reason, have)
	})
}

// writePage writes a page of Placement paged, which another client schedules.
func writePage(t *testing.T, name string, clusters ...string) {
	t.Helper()
	page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{names.LabelPlacement: "paged"},
	}}
	eventuallyCreate(t, plane.Client, page)
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(page), page))
	page.Status.Decisions = nil
	for _, cluster := range clusters {
		page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	require.NoError(t, plane.Client.Status().Update(t.Context(), page))
}

// createAddon creates a definition that lists Placements: of namespace default, or "namespace/name".
func createAddon(t *testing.T, name string, annotations map[string]string, placements ...string) {
	t.Helper()
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	for _, placement := range placements {
		cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
		namespace, name, found := strings.Cut(placement, "/")
		if !found {
			namespace, name = "default", placement
		}
		cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: namespace, Name: name},
		})
	}
	eventuallyCreate(t, plane.Client, cma)
}

// createMine creates an add-on on a cluster as a person does.
func createMine(t *testing.T, cluster, addon string) {
	t.Helper()
	require.NoError(t, plane.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addon},
	}))
}

func getAddon(t *testing.T, cluster, addon string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	var have addonv1alpha1.ManagedClusterAddOn
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addon}, &have))
	return &have
}

func installed(t *testing.T, addon string, want ...string) error {
	t.Helper()
	var list addonv1alpha1.ManagedClusterAddOnList
	require.NoError(t, plane.Client.List(t.Context(), &list))
	var have []string
	for i := range list.Items {
		if list.Items[i].Name == addon {
			have = append(have, list.Items[i].Namespace)
		}
	}
	slices.Sort(have)
	return equal(fmt.Sprint(want), fmt.Sprint(have))
}

func expectInstalled(t *testing.T, addon string, want ...string) {
	t.Helper()
	suite.Eventually(t, func() error { return installed(t, addon, want...) })
}

// told looks for an Event on a ClusterManagementAddOn.
func told(t *testing.T, addon, text string) error {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, plane.Client.List(t.Context(), &list))
	for i := range list.Items {
		if e := list.Items[i]; e.Regarding.Kind == "ClusterManagementAddOn" && e.Regarding.Name == addon &&
			strings.Contains(e.Note, text) {
			return nil
		}
	}
	return fmt.Errorf("no Event on %s says %q", addon, text)
}

func patch(t *testing.T, o client.Object, body string) {
	t.Helper()
	require.NoError(t, plane.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(body))))
}
