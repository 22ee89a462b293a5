package configure

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// pagesOfOthers are the decisions of another scheduler.
func pagesOfOthers(name string, at time.Time, before *fleet.Decisions, pages ...[]string) *fleet.Decisions {
	key := types.NamespacedName{Namespace: "ns", Name: name}
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	var all []*clusterv1beta1.PlacementDecision
	for i, clusters := range pages {
		page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint(name, "-decision-", i+1), ResourceVersion: at.String(),
		}}
		for _, cluster := range clusters {
			page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
			p.Status.NumberOfSelectedClusters++
		}
		all = append(all, page)
	}
	return fleet.NewDecisions(fleet.Seen{Key: key, Placement: p, Pages: all, Before: before}, at)
}

// ADR 0020: a cluster that another scheduler moves from one page of a Placement to the next is in none for a moment. It
// keeps its configuration meanwhile: "A cluster that another placement controller moves from one placement of an add-on
// to an earlier one gets the configuration of that one five minutes later". c is in the first page of "high", and moves
// to the second one; "low", an earlier placement, selects all clusters.
//
// Shows: hub/rollout-incomplete
func TestAClusterBetweenTwoPagesKeepsItsConfigurationWhateverTheStrategy(t *testing.T) {
	low, high, old := fixture.DeploymentConfig("low"), fixture.DeploymentConfig("high"), fixture.DeploymentConfig("default")
	states := addonconfig.States{low: {Hash: "l"}, high: {Hash: "h"}, old: {Hash: "o"}}
	now := fixture.Noon()
	all := pagesOfOthers("low", now.Add(-time.Hour), nil, []string{"a", "b", "c", "d"})
	whole := pagesOfOthers("high", now.Add(-time.Hour), nil, []string{"b", "c"}, []string{"d"})
	torn := pagesOfOthers("high", now, whole, []string{"a", "b"}, []string{"d"})
	require.NoError(t, torn.Incomplete)
	progressive := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{}}
	for sentence, c := range map[string]struct {
		placements []addonv1beta1.PlacementStrategy
		decisions  []*fleet.Decisions
		installed  bool
	}{
		"the earlier placement has a rollout (control)": {
			placements: []addonv1beta1.PlacementStrategy{
				fixture.ByStrategy(progressive, fixture.Placement("low", low)), fixture.Placement("high", high),
			},
			decisions: []*fleet.Decisions{all, torn}, installed: true,
		},
		"the earlier placement has the strategy All, the default": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("low", low), fixture.Placement("high", high)},
			decisions:  []*fleet.Decisions{all, torn}, installed: true,
		},
		"a person installed the add-on, and there are defaults": {
			placements: []addonv1beta1.PlacementStrategy{fixture.Placement("high", high)},
			decisions:  []*fleet.Decisions{torn},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{old}, c.placements...)
			addOn := fixture.With(fixture.AddOn("c", fixture.Has(high, "h")), fixture.IsTrue("Configured"),
				fixture.Condition("Progressing", metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted, now.Add(-time.Hour)))
			if c.installed {
				metav1.SetMetaDataLabel(&addOn.ObjectMeta, names.LabelInstalledBy, names.InstalledByPlacement)
			}
			r := &rollout.Reconciler{}
			r.Rehearse(rollout.World{
				Now: now, CMA: cma, Placements: c.decisions, AddOns: []*addonv1beta1.ManagedClusterAddOn{addOn}, States: states,
			})
			configurer := &Configurer{Admission: r.Admission}
			owner := fleet.OwnerOf("c", c.decisions, now)
			f := facts{addOn: addOn, cma: cma, placement: owner.Index, doubts: owner.Doubts, states: states}
			f.planned, f.admission = configurer.admission(f)
			decided := decide(f)
			require.Len(t, decided.references, 1)
			assert.Equal(t, "high", decided.references[0].DesiredConfig.Name,
				"its agent gets another configuration, and this one again as soon as the next page is written")
		})
	}
}
