package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// byOthers are the decisions of another placement controller about three clusters, in pages, that were others before; nil
// for the first ones.
func byOthers(name string, at time.Time, before *fleet.Decisions, pages ...[]string) *fleet.Decisions {
	return decidedByOthers(name, at, before, 3, pages...)
}

// A cluster is added before others, and moves the last one of each page to the next page, which is written later. What
// the status of the Placement says fits meanwhile, too: one came, and one is in none.
// Shows: hub/rollout-incomplete
func TestAClusterBetweenTwoPagesKeepsItsPlaceInTheRollout(t *testing.T) {
	template := fixture.Template("t")
	old, now := fixture.Has(template, "old"), fixture.Noon()
	progress := func(cluster, reason string) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(fixture.AddOn(cluster, fixture.Desires(template, "t")),
			fixture.Condition("Progressing", metav1.ConditionTrue, reason, now.Add(-time.Minute)))
	}
	whole := byOthers("p", now.Add(-time.Hour), nil, []string{"b", "c"}, []string{"d"})
	torn := byOthers("p", now, whole, []string{"a", "b"}, []string{"d"})
	for sentence, tc := range map[string]struct {
		c       *addonv1beta1.ManagedClusterAddOn
		at      time.Time
		before  admission
		admits  bool
		granted bool
		why     string
	}{
		"one that is on its way": {c: progress("c", "Progressing"), at: now, granted: true},
		"one that failed":        {c: progress("c", "Failed"), at: now, granted: true},
		"one that is gone for good frees it": {
			c: progress("c", "Progressing"), at: now.Add(fleet.FailoverPeriod), admits: true,
		},
		"one that waits is not moved": {
			c: fixture.AddOn("c", old), at: now, admits: true,
			why: "keeps what it has while the decisions of placement ns/p change",
		},
		"one that waited is not told another reason": {
			c: fixture.AddOn("c", old), at: now, admits: true, why: "its turn",
			before: admission{target: addonconfig.Fingerprint(fixture.AddOn("c", fixture.Desires(template, "t")).Status.ConfigReferences),
				reason: "its turn"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := fixture.Placement("p", template)
			of.RolloutStrategy = clusterv1alpha1.RolloutStrategy{
				Type:        clusterv1alpha1.Progressive,
				Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
			}
			p := decide(facts{
				now: tc.at, cma: fixture.NewCMA(nil, of), states: addonconfig.States{template: {Hash: "t"}},
				placements: []*fleet.Decisions{torn}, admitted: map[string]admission{"c": tc.before},
				members: membersOf(fixture.AddOn("a", old), fixture.AddOn("b", old), tc.c, fixture.AddOn("d", old)),
			})
			assert.Equal(t, tc.admits, p.admissions["a"].granted, "a: %+v", p.admissions["a"])
			assert.Equal(t, tc.granted, p.admissions["c"].granted)
			assert.Equal(t, tc.why, p.admissions["c"].reason)
			assert.Equal(t, 3, p.placements[0].Counts.Configured, "the status has those that are selected")
			assert.Zero(t, p.placements[0].Counts.Failed)
			if tc.at.Equal(now) {
				assert.Equal(t, now.Add(fleet.FailoverPeriod), p.wake)
			}
		})
	}
}

// Shows: hub/rollout-incomplete
func TestAClusterBetweenTwoPagesOfALaterPlacementDoesNotGetTheConfigurationOfAnEarlierOne(t *testing.T) {
	first, second, now := fixture.Template("t"), fixture.Template("u"), fixture.Noon()
	whole := byOthers("q", now.Add(-time.Hour), nil, []string{"b", "c"}, []string{"d"})
	for after, granted := range map[time.Duration]bool{0: false, fleet.FailoverPeriod: true} {
		p := decide(facts{
			now: now.Add(after), cma: fixture.NewCMA(nil, fixture.Placement("p", first), fixture.Placement("q", second)),
			states:     addonconfig.States{first: {Hash: "t"}, second: {Hash: "u"}},
			placements: []*fleet.Decisions{selects("c"), byOthers("q", now, whole, []string{"a", "b"}, []string{"d"})},
			members:    membersOf(fixture.AddOn("c", fixture.Has(second, "u"))),
		})
		target := addonconfig.Fingerprint(fixture.AddOn("c", fixture.Desires(first, "t")).Status.ConfigReferences)
		assert.Equal(t, granted, p.admissions["c"] == admission{
			addOn: p.admissions["c"].addOn, target: target, granted: true, since: now.Add(after),
		}, "%s: %+v", after, p.admissions["c"])
	}
}
