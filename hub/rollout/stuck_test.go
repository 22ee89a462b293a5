package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// saying is a condition with a message.
func saying(kind string, status metav1.ConditionStatus, reason, message string, since time.Time) metav1.Condition {
	c := fixture.Condition(kind, status, reason, since)
	c.Message = message
	return c
}

// Shows: hub/stuck-clusters
func TestAPlacementSaysHowManyClustersAreStuckAndWhyTheFirstIs(t *testing.T) {
	const counted = "selected clusters 3. configured addons 3/3 "
	no := func(kind, message string, ago time.Duration) metav1.Condition {
		return saying(kind, metav1.ConditionFalse, "Because", message, fixture.Noon().Add(-ago))
	}
	leaving := fixture.With(fixture.AddOn("c1"), no("ManifestApplied", "leaving.", time.Minute))
	deleted := metav1.NewTime(fixture.Noon())
	leaving.DeletionTimestamp = &deleted
	type addOns = []*addonv1beta1.ManagedClusterAddOn
	for name, tc := range map[string]struct {
		addOns  addOns
		says    string
		recheck time.Time
	}{
		"nothing is wrong": {addOns: addOns{fixture.With(fixture.AddOn("c1"), fixture.IsTrue("ManifestApplied"))},
			says: counted + "completed with no errors, 0 failed 0 timeout."},
		"what is wrong for a moment is looked at again": {addOns: addOns{fixture.With(fixture.AddOn("c1"), no("Available", "x", time.Second))},
			says: counted + "completed with no errors, 0 failed 0 timeout.", recheck: fixture.Noon().Add(4 * time.Second)},
		"one is stuck": {addOns: addOns{fixture.With(fixture.AddOn("c2"), no("ManifestApplied", "Not so.\nDo this.", time.Minute))},
			says: counted + "completed with no errors, 0 failed 0 timeout. 1 cluster is stuck, the first is c2: " +
				"ManifestApplied is False (Because): Not so. Do this."},
		"the first by name is told, whatever the order": {addOns: addOns{
			fixture.With(fixture.AddOn("c3"), no("ManifestApplied", "third", time.Minute)),
			fixture.With(fixture.AddOn("c1"), no("ClusterCertificateRotated", "first", time.Minute)),
			fixture.With(fixture.AddOn("c2"), no("ManifestApplied", "second", time.Minute)),
		}, says: " 3 clusters are stuck, the first is c1: ClusterCertificateRotated is False (Because): first."},
		"the cause counts, not what follows from it": {addOns: addOns{fixture.With(fixture.AddOn("c1"), no("Available", "no pod", time.Minute),
			no("RegistrationApplied", "no role", time.Minute))},
			says: " 1 cluster is stuck, the first is c1: RegistrationApplied is False (Because): no role."},
		"another condition does not start the time again": {addOns: addOns{fixture.With(fixture.AddOn("c1"), no("Available", "no pod", time.Minute),
			no("RegistrationApplied", "no role", time.Second))},
			says: "RegistrationApplied is False (Because): no role."},
		"what is not known is not stuck": {
			addOns: addOns{fixture.With(fixture.AddOn("c1"), fixture.Condition("Available", metav1.ConditionUnknown, "Because", fixture.Noon().Add(-time.Hour)))},
			says:   counted + "completed with no errors, 0 failed 0 timeout."},
		"one whose cluster is silent before it is done is stuck": {
			addOns: addOns{fixture.With(fixture.AddOn("c1"), saying("Available", metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped",
				"The agent stopped.", fixture.Noon().Add(-time.Hour)))},
			says: " 1 cluster is stuck, the first is c1: Available is Unknown (ManagedClusterLeaseUpdateStopped): The agent stopped.",
		},
		"one whose cluster is silent after it was done is not": {
			addOns: addOns{fixture.With(fixture.AddOn("c1"), fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon()),
				fixture.Condition("Available", metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped", fixture.Noon().Add(-time.Hour)))},
			says: counted + "completed with no errors, 0 failed 0 timeout."},
		"one on its way out is not stuck": {addOns: addOns{leaving},
			says: counted[:len(counted)-4] + "2/3 progressing..., 0 failed 0 timeout."},
		"one that no placement selects is not counted": {addOns: addOns{fixture.With(fixture.AddOn("other"), no("ManifestApplied", "x", time.Minute))},
			says: counted + "completed with no errors, 0 failed 0 timeout."},
		"a long cause is cut": {addOns: addOns{fixture.With(fixture.AddOn("c1"), no("ManifestApplied", strings.Repeat("ä", 5000), time.Minute))},
			says: strings.Repeat("ä", 198) + "...."},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{now: fixture.Noon(), cma: fixture.NewCMA(nil, fixture.Placement("p")),
				placements: []*fleet.Decisions{selects("c1", "c2", "c3")}, members: membersOf(tc.addOns...), served: map[string]bool{"c1": true}}
			for _, cluster := range []string{"c1", "c2", "c3"} {
				if f.members[cluster] == nil {
					f.members[cluster] = newMember(fixture.AddOn(cluster), nil)
				}
			}
			after, recheck := concluded(f)
			message := after.Status.InstallProgressions[0].Conditions[0].Message
			if strings.HasPrefix(tc.says, counted) {
				assert.Equal(t, tc.says, message)
			}
			assert.Contains(t, message, tc.says)
			assert.Equal(t, tc.recheck, recheck)
		})
	}
}

func TestAPlacementThatSelectsNothingSaysWhyAndWhatToDo(t *testing.T) {
	satisfied := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return saying("PlacementSatisfied", status, reason, message, fixture.Noon())
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		missing    bool
		says       string
	}{
		"it does not exist": {missing: true,
			says: "placement ns/p does not exist: create it, or correct spec.installStrategy.placements"},
		"nobody has decided it": {says: "placement ns/p selects no cluster: no placement controller has decided it; start " +
			"the hub manager with --placement=true, or one of OCM"},
		"it is misconfigured": {
			conditions: []metav1.Condition{
				satisfied(metav1.ConditionTrue, "AllDecisionsScheduled", "old"),
				saying("PlacementMisconfigured", metav1.ConditionTrue, "Misconfigured", "spec.sortBy is not supported: remove it.", fixture.Noon()),
			},
			says: "placement ns/p selects no cluster: spec.sortBy is not supported: remove it"},
		"no cluster matches": {
			conditions: []metav1.Condition{satisfied(metav1.ConditionFalse, "NoManagedClusterMatched", "No ManagedCluster matches.")},
			says: "placement ns/p selects no cluster: No ManagedCluster matches; compare spec.predicates and spec.tolerations " +
				"with the labels and taints of the ManagedClusters"},
		"no set is bound": {
			conditions: []metav1.Condition{satisfied(metav1.ConditionFalse, "NoManagedClusterSetBindings", "No bindings")},
			says: "placement ns/p selects no cluster: No bindings; create a ManagedClusterSetBinding in namespace ns for a " +
				"set that has clusters"},
		"the sets are others": {
			conditions: []metav1.Condition{satisfied(metav1.ConditionFalse, "NoIntersection", "None")},
			says:       "spec.clusterSets must name sets that a ManagedClusterSetBinding in namespace ns binds"},
		"the sets are empty": {
			conditions: []metav1.Condition{satisfied(metav1.ConditionFalse, "AllManagedClusterSetsEmpty", "None")},
			says:       "put ManagedClusters into the sets"},
		"it selected some a moment ago": {
			conditions: []metav1.Condition{satisfied(metav1.ConditionTrue, "AllDecisionsScheduled", "All")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := selects()
			if p.Placement.Status.Conditions = tc.conditions; tc.missing {
				p = missing()
			}
			remark := selectionRemark(p, addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"})
			if tc.says == "" {
				assert.Empty(t, remark)
			}
			assert.Contains(t, remark, tc.says)
		})
	}
}

func TestOnlyWhatAPlacementSaysAboutItsSelectionCountsAnew(t *testing.T) {
	explanation := func(conditions ...metav1.Condition) *clusterv1beta1.Placement {
		return &clusterv1beta1.Placement{Status: clusterv1beta1.PlacementStatus{Conditions: conditions}}
	}
	matched := saying("PlacementSatisfied", metav1.ConditionFalse, "NoManagedClusterMatched", "a", fixture.Noon())
	other := saying("PlacementSatisfied", metav1.ConditionFalse, "NoManagedClusterMatched", "b", fixture.Noon())
	for name, tc := range map[string]struct {
		was, is *clusterv1beta1.Placement
		want    bool
	}{
		"nothing":             {explanation(), explanation(), false},
		"the first condition": {explanation(), explanation(matched), true},
		"another message":     {explanation(matched), explanation(other), true},
		"a later time":        {explanation(matched), explanation(saying("PlacementSatisfied", "False", "NoManagedClusterMatched", "a", fixture.Noon().Add(1))), false},
		"another condition":   {explanation(matched), explanation(matched, fixture.IsTrue("Other")), false},
		"it is misconfigured": {explanation(matched), explanation(matched, fixture.IsTrue("PlacementMisconfigured")), true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, selectionChanged().Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}))
		})
	}
}
