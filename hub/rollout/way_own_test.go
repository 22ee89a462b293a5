package rollout

import (
	"cmp"
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

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// ownPlay is a rollout to cluster a (group 0), and after it to b (group 1), with a deadline of 20 minutes. Cluster a may
// name a ConfigMap that the hub manager does not read, as the configurations of most add-ons of OCM are.
type ownPlay struct {
	Reconciler
	now        time.Time
	soak       time.Duration
	failures   intstr.IntOrString
	deadline   string
	incomplete error
	late       []string
}

func (r *ownPlay) minute(addOns ...*addonv1beta1.ManagedClusterAddOn) []string {
	r.now = r.now.Add(time.Minute)
	placement := selects("a", "b")
	placement.Groups["b"] = fleet.Group{Index: 1}
	placement.Incomplete = r.incomplete
	before, _ := r.decided.Get("hello")
	p := decide(facts{
		now: r.now, states: addonconfig.States{
			fixture.Template("t"): {Hash: "t"}, fixture.ConfigMap("c"): {Unread: "the hub manager does not read it"},
		},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{
					ProgressDeadline: cmp.Or(r.deadline, "20m"), MaxFailures: r.failures, MinSuccessTime: metav1.Duration{Duration: r.soak},
				},
			},
		}, fixture.Placement("p", fixture.Template("t")))),
		placements: []*fleet.Decisions{placement}, members: membersOf(addOns...),
		served:   map[string]bool{"a": true, "b": true},
		admitted: before.admissions, ways: before.ways,
	})
	r.remember("hello", p)
	r.late = p.placements[0].TimedOut
	return p.placements[0].New
}

// ownA is the add-on of a; with own, it names the ConfigMap, of which a hash is known or not ("").
func ownA(uid string, own bool, references ...addonv1beta1.ConfigReference) *addonv1beta1.ManagedClusterAddOn {
	a := fixture.AddOn("a", references...)
	a.UID = types.UID(uid)
	if own {
		a.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}
	}
	return a
}

func ownFlies(uid string, own bool, hash string, since time.Time) *addonv1beta1.ManagedClusterAddOn {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "t")}
	if own {
		references = append([]addonv1beta1.ConfigReference{fixture.Desires(fixture.ConfigMap("c"), hash)}, references...)
	}
	return fixture.With(ownA(uid, own, references...), fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", since))
}

func ownDone(own bool, since time.Time) *addonv1beta1.ManagedClusterAddOn {
	references := []addonv1beta1.ConfigReference{fixture.Has(fixture.Template("t"), "t")}
	if own {
		references = append([]addonv1beta1.ConfigReference{fixture.Has(fixture.ConfigMap("c"), "known")}, references...)
	}
	return fixture.With(ownA("first", own, references...), fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", since))
}

// Cluster a names a ConfigMap of its own, of which the manager of the add-on reports the hash a minute after the status
// names it. Seven minutes later a is complete. It has to soak for ten minutes then.
//
// Shows: hub/rollout-soak
func TestASoakIsWholeAfterAHashThatWasReported(t *testing.T) {
	for sentence, own := range map[string]bool{"control: a names none of its own": false, "a names one": true} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon(), soak: 10 * time.Minute}, fixture.AddOn("b")
			require.Equal(t, []string{"a"}, r.minute(ownA("first", own), b))
			flight := r.now
			r.minute(ownFlies("first", own, "", flight), b)
			for range 8 {
				r.minute(ownFlies("first", own, "known", flight), b)
			}
			complete := r.now
			for range 9 {
				if !assert.NotContains(t, r.minute(ownDone(own, complete), b), "b",
					"a has soaked for %s, of ten minutes", r.now.Sub(complete)) {
					return
				}
			}
			assert.Equal(t, []string{"b"}, r.minute(ownDone(own, complete), b))
		})
	}
}

// The same, and a soaks for a day. After an hour its add-on is created again (Without a configuration of
// its own that is TestACanaryThatIsCreatedAgainWhileItSoaksIsNotTimedOutAtOnce.).
//
// Shows: hub/rollout-again
func TestACanaryWithAConfigurationOfItsOwnThatIsCreatedAgainIsNotTimedOutAtOnce(t *testing.T) {
	for sentence, own := range map[string]bool{"control: a names none of its own": false, "a names one": true} {
		for how, missed := range map[string]bool{"and that is seen": true, "between two passes": false} {
			t.Run(sentence+" "+how, func(t *testing.T) {
				r, b := &ownPlay{now: fixture.Noon(), soak: 24 * time.Hour}, fixture.AddOn("b")
				r.minute(ownA("first", own), b)
				flight := r.now
				r.minute(ownFlies("first", own, "", flight), b)
				r.minute(ownFlies("first", own, "known", flight), b)
				complete := r.now
				for range 60 {
					r.minute(ownDone(own, complete), b)
				}
				if missed {
					r.minute(b)
					assert.NotContains(t, r.late, "a", "it lacks its add-on for one minute")
				}
				r.minute(ownA("second", own), b)
				again := r.now
				r.minute(ownFlies("second", own, "known", again), b)
				assert.NotContains(t, r.late, "a", "it is on its way for some minutes in all, of 20")
			})
		}
	}
}

// The add-on of a is created again while nothing is rolled out for an hour, for the strategy cannot be used. (The last
// case of TestAnAddOnThatArrivedOrWaitedHasItsWholeDeadlineAgain, with a configuration of its own.)
//
// Shows: hub/rollout-again
func TestWhoWaitedForItsTurnHasNotBeenOnItsWay(t *testing.T) {
	for sentence, own := range map[string]bool{"control: a names none of its own": false, "a names one": true} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon()}, fixture.AddOn("b")
			r.minute(ownA("first", own), b)
			flight := r.now
			r.minute(ownFlies("first", own, "", flight), b)
			r.minute(ownFlies("first", own, "known", flight), b)
			r.failures = intstr.FromString("some")
			for range 60 {
				assert.Empty(t, r.minute(ownA("second", own), b))
			}
			r.failures = intstr.FromInt32(0)
			assert.Equal(t, []string{"a"}, r.minute(ownA("second", own), b))
			again := r.now
			r.minute(ownFlies("second", own, "known", again), b)
			assert.NotContains(t, r.late, "a", "it has its turn since a minute, and 20")
		})
	}
}

// Cluster a is complete, and has to soak for ten minutes. Its add-on is created again, while the decisions of the
// placement lack a page, which they do for an hour: nobody is admitted meanwhile. (TestTheTimeInWhichAPlacementAdmits
// NobodyDoesNotCount has one that never was complete.)
//
// Shows: hub/rollout-again
func TestTheTimeInWhichAPlacementAdmitsNobodyDoesNotCountForWhoSoaked(t *testing.T) {
	for sentence, complete := range map[string]bool{"control: it never was complete": false, "it was complete": true} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon(), soak: 10 * time.Minute}, fixture.AddOn("b")
			r.minute(ownA("first", false), b)
			flight := r.now
			r.minute(ownFlies("first", false, "", flight), b)
			at := r.now
			for range 2 {
				if complete {
					r.minute(ownDone(false, at), b)
				} else {
					r.minute(ownFlies("first", false, "", flight), b)
				}
			}
			r.incomplete = assert.AnError
			for range 60 {
				r.minute(ownA("second", false), b)
			}
			r.incomplete = nil
			require.Equal(t, []string{"a"}, r.minute(ownA("second", false), b))
			r.minute(ownFlies("second", false, "", r.now), b)
			assert.NotContains(t, r.late, "a", "it was admitted a minute ago; it was on its way for five minutes in all, of 20")
		})
	}
}

// The clock is a day ahead for a moment, in which the decisions of the placement lack a page.
//
// Shows: hub/rollout-again
func TestAClockThatIsAheadWhileNobodyIsAdmittedTimesNobodyOut(t *testing.T) {
	for sentence, ahead := range map[string]time.Duration{"control: the clock is right": 0, "the clock is a day ahead": 24 * time.Hour} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon()}, fixture.AddOn("b")
			r.minute(ownA("first", false), b)
			r.minute(ownFlies("first", false, "", r.now), b)
			r.now, r.incomplete = r.now.Add(ahead), assert.AnError
			r.minute(ownA("second", false), b)
			r.now, r.incomplete = r.now.Add(-ahead), nil
			require.Equal(t, []string{"a"}, r.minute(ownA("second", false), b))
			r.minute(ownFlies("second", false, "", r.now), b)
			assert.NotContains(t, r.late, "a", "it is on its way for five minutes, of 20")
		})
	}
}

// One cluster moves at a time, and each has ten minutes; all failures are tolerated. Cluster a does not get well. Its
// user, who may delete its add-on, does so each time it was in flight for nine minutes. All others are well at once.
//
// Shows: hub/rollout-again
func TestAnAddOnThatIsCreatedAgainAndAgainHasOneDeadlineThoughItWaitsInBetween(t *testing.T) {
	for sentence, again := range map[string]bool{"control: its add-on stays": false, "it is created again": true} {
		t.Run(sentence, func(t *testing.T) {
			const others = 12
			var r Reconciler
			tmpl, now, all := fixture.Template("t"), fixture.Noon(), []string{"a"}
			for i := range others {
				all = append(all, fmt.Sprintf("b%02d", i))
			}
			addOns, began, number := map[string]*addonv1beta1.ManagedClusterAddOn{}, map[string]time.Time{}, 0
			created := func(name string) {
				number++
				addOns[name] = fixture.AddOn(name)
				addOns[name].UID = types.UID(fmt.Sprint(number))
				delete(began, name)
			}
			for _, name := range all {
				created(name)
			}
			left := others
			for left > 0 && now.Before(fixture.Noon().Add(10*time.Hour)) {
				now = now.Add(time.Minute)
				var there []*addonv1beta1.ManagedClusterAddOn
				for _, name := range all {
					if addOns[name] != nil {
						there = append(there, addOns[name])
					}
				}
				before, _ := r.decided.Get("hello")
				p := decide(facts{
					now: now, states: addonconfig.States{tmpl: {Hash: "t"}},
					cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
						Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
							MaxConcurrency: intstr.FromInt32(1), RolloutConfig: clusterv1alpha1.RolloutConfig{
								ProgressDeadline: "10m", MaxFailures: intstr.FromString("100%"),
							},
						},
					}, fixture.Placement("p", tmpl))),
					placements: []*fleet.Decisions{selects(all...)}, members: membersOf(there...),
					served: map[string]bool{"a": true}, admitted: before.admissions, ways: before.ways,
				})
				r.remember("hello", p)
				for name, since := range began {
					uid := addOns[name].UID
					if name != "a" && since.Before(now) {
						addOns[name] = fixture.With(fixture.AddOn(name, fixture.Has(tmpl, "t")),
							fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", now))
						addOns[name].UID = uid
						delete(began, name)
						left--
					}
				}
				switch since, flies := began["a"]; {
				case !again:
				case addOns["a"] == nil:
					created("a")
				case flies && !now.Before(since.Add(9*time.Minute)):
					addOns["a"] = nil
					delete(began, "a")
				}
				for _, name := range p.placements[0].New {
					uid := addOns[name].UID
					addOns[name] = fixture.With(fixture.AddOn(name, fixture.Desires(tmpl, "t")),
						fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", now))
					addOns[name].UID = uid
					began[name] = now
				}
			}
			assert.Less(t, now.Sub(fixture.Noon()), time.Hour, "two minutes for each of the others, and ten for a")
		})
	}
}

// Cluster a is on its way for five minutes, and not well yet. A user names a ConfigMap in the spec of its add-on, of which
// the manager reports the hash in the same minute. Where there is no deadline, it "awaits the hash for a minute".
//
// Shows: hub/rollout-unknown-hash
func TestWhoBeginsToAwaitAHashHasAMinuteFromThenOn(t *testing.T) {
	for sentence, deadline := range map[string]string{"control: with a deadline": "20m", "without a deadline": "None"} {
		t.Run(sentence, func(t *testing.T) {
			r, b := &ownPlay{now: fixture.Noon(), deadline: deadline}, fixture.AddOn("b")
			require.Equal(t, []string{"a"}, r.minute(ownA("first", false), b))
			flight := r.now
			for range 5 {
				require.Empty(t, r.minute(ownFlies("first", false, "", flight), b))
			}
			assert.Empty(t, r.minute(ownFlies("first", true, "", flight), b), "a is not well, and awaits the hash since this minute")
			assert.Empty(t, r.minute(ownFlies("first", true, "known", flight), b))
		})
	}
}
