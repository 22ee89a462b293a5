package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// One commit adds the decision group "canary" to the Placement and a rollout that begins with it. The rollout is
// planned before the Placement is decided again: no cluster is in the group yet, so nobody waits for it.
func TestARolloutWaitsForTheDecisionOfAnEditedPlacement(t *testing.T) {
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 1}}
	page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-decision-1"}}
	for _, c := range []string{"a", "b", "c"} {
		page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	pages := []*clusterv1beta1.PlacementDecision{page}
	placement.Status.NumberOfSelectedClusters = 3
	placement.Status.Conditions = []metav1.Condition{fleet.Mark(1, pages)}
	placement.Generation = 2
	placement.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "canary"}}
	d := fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: placement, Pages: pages, Own: true}, time.Now())

	template := fixture.Template("t")
	strategy := fixture.Placement("p", template)
	strategy.RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
				MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}},
			},
		},
	}
	p := decide(facts{
		now: fixture.Noon(), cma: fixture.NewCMA(nil, strategy), states: addonconfig.States{template: {Hash: "t"}},
		placements: []*fleet.Decisions{d}, members: membersOf(fixture.AddOn("a"), fixture.AddOn("b"), fixture.AddOn("c")),
	})
	for _, c := range []string{"a", "b", "c"} {
		assert.False(t, p.admissions[c].granted, c)
	}
}
