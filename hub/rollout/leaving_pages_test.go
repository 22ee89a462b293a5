package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// All clusters have the configuration, and c has failed with it. A cluster that comes back to the front moves c to the
// next page, which is written later. For that moment the status must not say that all is complete, and must not record
// the configuration as known to be good: that is never taken back.
//
// Shows: hub/rollout-incomplete
func TestAClusterBetweenTwoPagesThatFailedCompletesNoRollout(t *testing.T) {
	template := fixture.Template("t")
	now := fixture.Noon()
	whole := byOthers("p", now.Add(-time.Hour), nil, []string{"b", "c"}, []string{"d"})
	torn := byOthers("p", now, whole, []string{"a", "b"}, []string{"d"})
	done := func(cluster string) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(cluster, fixture.Has(template, "t")),
			fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", now.Add(-time.Hour)))
	}
	broken := fixture.With(fixture.AddOn("c", fixture.Desires(template, "t")),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", now.Add(-time.Hour)))
	of := fixture.Placement("p", template)
	of.RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{
			RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromInt32(1)},
		},
	}
	for sentence, decisions := range map[string]*fleet.Decisions{
		"c is in a page (control)": byOthers("p", now.Add(time.Second), torn, []string{"a", "b"}, []string{"c", "d"}),
		"c is between two pages":   torn,
	} {
		t.Run(sentence, func(t *testing.T) {
			f := facts{
				now: now, cma: fixture.NewCMA(nil, of), states: addonconfig.States{template: {Hash: "t"}},
				placements: []*fleet.Decisions{decisions},
				members:    membersOf(done("a"), done("b"), broken, done("d")),
			}
			p := decide(f)
			after := conclude(f, p)
			progression := after.Status.InstallProgressions[0]
			t.Log(progression.Conditions[0].Reason, progression.Conditions[0].Message)
			assert.NotEqual(t, "Completed", progression.Conditions[0].Reason, "c has failed, and is about to be selected again")
			require.NotEmpty(t, progression.ConfigReferences)
			assert.Nil(t, progression.ConfigReferences[0].LastKnownGoodConfig, "the configuration has failed on c")
		})
	}
}

// A user edits a Placement of another scheduler so that it selects ten clusters of the forty that it had. maxConcurrency
// is a tenth, and so is maxFailures.
//
// Shows: hub/rollout-incomplete
func TestAShareIsThatOfTheClustersThatAreSelected(t *testing.T) {
	template := fixture.Template("t")
	old, now := fixture.Has(template, "old"), fixture.Noon()
	var few, all []string
	var members []*addonv1beta1.ManagedClusterAddOn
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		if all = append(all, name); i < 10 {
			few = append(few, name)
		}
		members = append(members, fixture.AddOn(name, old))
	}
	of := fixture.Placement("p", template)
	of.RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type:        clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromString("10%")},
	}
	whole := decidedByOthers("p", now.Add(-time.Hour), nil, 40, all[:20], all[20:])
	fewer := decidedByOthers("p", now, whole, 10, few[:5], few[5:])
	for sentence, c := range map[string]time.Time{
		"five minutes after the edit (control)": now.Add(fleet.FailoverPeriod),
		"right after the edit":                  now,
	} {
		t.Run(sentence, func(t *testing.T) {
			p := decide(facts{
				now: c, cma: fixture.NewCMA(nil, of), states: addonconfig.States{template: {Hash: "t"}},
				placements: []*fleet.Decisions{fewer}, members: membersOf(members...),
			})
			granted := 0
			for _, cluster := range few {
				if p.admissions[cluster].granted {
					granted++
				}
			}
			assert.Equal(t, 1, granted, "a tenth of the ten clusters that the Placement selects")
		})
	}
}

// decidedByOthers are the decisions of another scheduler.
func decidedByOthers(name string, at time.Time, before *fleet.Decisions, selected int32, pages ...[]string) *fleet.Decisions {
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "p"}}
	placement.Status.NumberOfSelectedClusters = selected
	placement.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	return decidedIn(name, placement, at, before, pages...)
}

// decidedIn are decisions of another scheduler about a Placement, which may be nil.
func decidedIn(
	placementName string, placement *clusterv1beta1.Placement, at time.Time, before *fleet.Decisions, pages ...[]string,
) *fleet.Decisions {
	var all []*clusterv1beta1.PlacementDecision
	for i, clusters := range pages {
		page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint(placementName, "-decision-", i+1), ResourceVersion: at.String(),
			Labels: map[string]string{names.LabelDecisionGroupIndex: fmt.Sprint(i)},
		}}
		for _, cluster := range clusters {
			page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		all = append(all, page)
	}
	return fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: placementName}, Placement: placement, Pages: all, Before: before}, at)
}

// GitOps deletes a Placement of another scheduler and creates it again three seconds later (kubectl replace --force). The
// garbage collector deletes its pages; the scheduler writes the new ones, one after the other, and the status at last,
// as OCM does. c, which is on its way (or failed), is in the second page.
//
// Shows: hub/rollout-incomplete
func TestAPlacementThatIsCreatedAgainKeepsThePlacesOfItsClusters(t *testing.T) {
	template := fixture.Template("t")
	old, now := fixture.Has(template, "old"), fixture.Noon()
	whole := byOthers("p", now.Add(-time.Hour), nil, []string{"a", "b"}, []string{"c"})
	again := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "again"}}
	for sentence, gone := range map[string]bool{
		"its pages went after it was there again (control)": false,
		"its pages went before it was there again":          true,
	} {
		for _, reason := range []string{"Progressing", "Failed"} {
			t.Run(sentence+", "+reason, func(t *testing.T) {
				d := whole
				if gone {
					d = decidedIn("p", nil, now, d)
				}
				d = decidedIn("p", again, now.Add(3*time.Second), d)
				require.Error(t, d.Incomplete, "nothing moves meanwhile")
				at := now.Add(4 * time.Second)
				d = decidedIn("p", again, at, d, []string{"a", "b"}) // the second page is not written yet
				of := fixture.Placement("p", template)
				of.RolloutStrategy = clusterv1alpha1.RolloutStrategy{
					Type:        clusterv1alpha1.Progressive,
					Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
				}
				c := fixture.With(fixture.AddOn("c", fixture.Desires(template, "t")),
					fixture.Condition("Progressing", metav1.ConditionTrue, reason, now.Add(-time.Minute)))
				p := decide(facts{
					now: at, cma: fixture.NewCMA(nil, of), states: addonconfig.States{template: {Hash: "t"}},
					placements: []*fleet.Decisions{d}, members: membersOf(fixture.AddOn("a", old), fixture.AddOn("b", old), c),
				})
				assert.False(t, p.admissions["a"].granted, "maxConcurrency 1, maxFailures 0: %+v", p.admissions["a"])
			})
		}
	}
}
