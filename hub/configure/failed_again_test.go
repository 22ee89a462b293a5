package configure

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// stopsBy stops a rollout in one of three ways.
func stopsBy(t *testing.T, r *three, how string, tmpl addonv1beta1.AddOnConfig) {
	t.Helper()
	switch how {
	case "breaks":
		r.breaks(t, tmpl)
	case "loses":
		r.loses(t, tmpl)
	default:
		r.breaksWhileItSoaks(t, tmpl, 20)
	}
}

// stoppedOfTwo returns a race that stopped at cluster a, although two may move at a time, and the add-on that comes when
// that of a is created again.
func stoppedOfTwo(t *testing.T, how string, tmpl addonv1beta1.AddOnConfig) (*three, *addonv1beta1.ManagedClusterAddOn) {
	t.Helper()
	r := newThree(tmpl)
	r.a.UID = "first"
	fresh := r.a.DeepCopy()
	fresh.UID = "again"
	stopsBy(t, r, how, tmpl)
	require.True(t, isFailed(r.a))
	r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
	r.staysFor(t, tmpl, 3, "bad")
	return r, fresh
}

// passWithout is a pass in which a has no add-on.
func (r *three) passWithout(d *fleet.Decisions) {
	now := fixture.Noon().Add(r.after)
	r.after += 30 * time.Second
	r.r.Rehearse(rollout.World{
		Now: now, CMA: r.cma, Placements: []*fleet.Decisions{d}, AddOns: []*addonv1beta1.ManagedClusterAddOn{r.b, r.c}, States: r.states,
		Served: map[string]bool{"a": true},
	})
	r.b, r.c = r.configures(r.b), r.configures(r.c)
}

// incomplete returns decisions that are not complete.
func incomplete(since time.Time) *fleet.Decisions {
	d := decidedLongAgo("a", "b", "c")
	d.Incomplete, d.DoubtedSince = assert.AnError, since
	return d
}

// A failed add-on is created again, and the hub manager starts again after some passes.
//
// Shows: hub/rollout-failed-noted
func TestAFailedAddOnThatIsCreatedAgainHasFailedAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, how := range []string{"breaks", "loses", "soaks"} {
		for _, gone := range []int{0, 2} {
			for _, at := range []int{1, 4} {
				for _, restart := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s gone %d restart after %d %t", how, gone, at, restart), func(t *testing.T) {
						r, fresh := stoppedOfTwo(t, how, tmpl)
						for range gone {
							r.passWithout(decidedLongAgo("a", "b", "c"))
						}
						r.a = fresh
						r.staysFor(t, tmpl, at, "bad")
						if restart {
							r.r = &rollout.Reconciler{}
						}
						r.staysFor(t, tmpl, 60, "bad")
					})
				}
			}
		}
	}
}

// While there is no add-on, another scheduler moves the cluster from page to page.
//
// Shows: hub/rollout-failures, hub/rollout-incomplete
func TestAFailureWithoutAnAddOnOutlivesAMoveBetweenPages(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, tearing := range []bool{false, true} {
		t.Run(fmt.Sprint(tearing), func(t *testing.T) {
			r := newThree(tmpl)
			r.a.UID = "first"
			fresh := r.a.DeepCopy()
			r.breaks(t, tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
			all := pagesOfOthers("p", fixture.Noon().Add(-time.Hour), nil, []string{"a", "b"}, []string{"c"})
			whole := func(time.Time) *fleet.Decisions { return all }
			for n := range 3 {
				r.passIn(whole)
				require.True(t, r.stays(t, tmpl, n))
			}
			r.passWithout(all)
			require.True(t, r.stays(t, tmpl, -1))
			if tearing {
				at := fixture.Noon().Add(r.after)
				torn := pagesOfOthers("p", at, all, []string{"b"}, []string{"c"})
				r.passWithout(torn)
				require.True(t, r.stays(t, tmpl, -2))
				back := pagesOfOthers("p", fixture.Noon().Add(r.after), torn, []string{"b"}, []string{"a", "c"})
				whole = func(time.Time) *fleet.Decisions { return back }
			}
			fresh.UID = "again"
			r.a = fresh
			for n := range 60 {
				r.passIn(whole)
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}

// The new add-on names a configuration of its own that is unknown, while decisions are unknown.
//
// Shows: hub/rollout-incomplete
func TestAnUnknownOwnConfigurationGivesNothingWhileDecisionsAreTorn(t *testing.T) {
	tmpl, unread, none := fixture.Template("t"), fixture.ConfigMap("c"), fixture.DeploymentConfig("none")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{"control: none": nil, "unread": {unread}, "missing": {none}} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[none] = addonconfig.State{Missing: true}
			r.a.UID = "first"
			fresh := r.a.DeepCopy()
			r.breaks(t, tmpl)
			fresh.UID = "again"
			fresh.Spec.Configs = own
			r.a = fresh
			d := incomplete(fixture.Noon().Add(r.after))
			for range 5 {
				r.passIn(func(time.Time) *fleet.Decisions { return d })
			}
			assert.Empty(t, r.hash(r.a, tmpl), "gets the content although it is unknown which clusters are selected: %v", r.a.Status)
		})
	}
}

// A failed add-on is created again while decisions are torn for some passes, which end; a restart at any pass.
//
// Shows: hub/rollout-failed-noted
func TestDecisionsThatAreTornExcuseNoFailureAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, how := range []string{"loses", "soaks"} {
		for _, passes := range []int{1, 3} {
			for at := 1; at < 5; at++ {
				t.Run(fmt.Sprintf("%s torn %d restart before pass %d", how, passes, at), func(t *testing.T) {
					r, fresh := stoppedOfTwo(t, how, tmpl)
					r.a = fresh
					since := fixture.Noon().Add(r.after)
					for n := range passes + 20 {
						if n == at {
							r.r = &rollout.Reconciler{}
						}
						if n < passes {
							r.passIn(func(time.Time) *fleet.Decisions { return incomplete(since) })
						} else {
							r.pass("bad")
						}
						if !r.stays(t, tmpl, n) {
							return
						}
					}
				})
			}
		}
	}
}

// As before, and the cluster leaves, or the strategy has a typing error.
//
// Shows: hub/rollout-incomplete
func TestAnUnknownOwnConfigurationGivesNothingWhileNobodyIsAdmitted(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{"control: none": nil, "unread": {unread}} {
		for _, hold := range []string{"leaves", "problem"} {
			t.Run(sentence+" "+hold, func(t *testing.T) {
				r := newThree(tmpl)
				r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
				r.a.UID = "first"
				fresh := r.a.DeepCopy()
				r.breaks(t, tmpl)
				all := pagesOfOthers("p", fixture.Noon().Add(-time.Hour), nil, []string{"a", "b"}, []string{"c"})
				whole := func(time.Time) *fleet.Decisions { return all }
				r.passIn(whole)
				fresh.UID = "again"
				fresh.Spec.Configs = own
				r.a = fresh
				in := whole
				if hold == "leaves" {
					torn := pagesOfOthers("p", fixture.Noon().Add(r.after), all, []string{"b"}, []string{"c"})
					in = func(time.Time) *fleet.Decisions { return torn }
				} else {
					r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.ProgressDeadline = "10x"
				}
				for range 2 {
					r.passIn(in)
				}
				assert.Empty(t, r.hash(r.a, tmpl), "%v", r.a.Status.Conditions)
			})
		}
	}
}

// The condition of a failed add-on that is created again while decisions are torn is there in each pass from then on.
//
// Shows: hub/rollout-failed-noted
func TestTheConditionStaysWhenTheContentIsGivenAgain(t *testing.T) {
	tmpl := fixture.Template("t")
	for _, passes := range []int{0, 2} {
		t.Run(fmt.Sprint("torn ", passes), func(t *testing.T) {
			r := newThree(tmpl)
			r.a.UID = "first"
			fresh := r.a.DeepCopy()
			stopsBy(t, r, "soaks", tmpl)
			fresh.UID = "again"
			r.a = fresh
			since := fixture.Noon().Add(r.after)
			for n := range passes + 5 {
				if n < passes {
					r.passIn(func(time.Time) *fleet.Decisions { return incomplete(since) })
				} else {
					r.pass("bad")
				}
				assert.True(t, isFailed(r.a), "pass %d, a has %q", n, r.hash(r.a, tmpl))
			}
		})
	}
}
