package configure

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// toggles is a race in which no failure is tolerated, and the tenant of a cluster names own configurations and takes
// them off again.
type toggles struct {
	*race
	now time.Time
	// plans is how many plans there are for a pass of the add-ons.
	plans int
}

func newToggles(rolled ...addonv1beta1.AddOnConfig) *toggles {
	r := &toggles{race: newRace(rolled...), now: fixture.Noon(), plans: 1}
	r.strategy().RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
	return r
}

func (r *toggles) strategy() *addonv1beta1.PlacementStrategy {
	return &r.cma.Spec.InstallStrategy.Placements[0]
}

// passes lets time pass; a and b say whether the works of the clusters are well.
func (r *toggles) passes(n int, a, b bool) {
	c := &Configurer{Admission: r.r.Admission}
	one := func(addOn *addonv1beta1.ManagedClusterAddOn, well bool) *addonv1beta1.ManagedClusterAddOn {
		return c.Rehearse(r.cma, addOn, r.states, func(references []addonv1beta1.ConfigReference) addon.Progress {
			work := fixture.Work("w", 3, references)
			if !well {
				work.Status.Conditions[1].Status = metav1.ConditionFalse
			}
			return addon.Progress{Now: r.now, Works: []*workv1.ManifestWork{work}}
		})
	}
	for range n {
		for range r.plans {
			r.plan(r.now)
		}
		r.a, r.b = one(r.a, a), one(r.b, b)
		r.now = r.now.Add(30 * time.Second)
	}
}

// The last cluster fails with a configuration of its own, takes it off, and must not get what the rollout gives before
// its turn.
//
// Shows: hub/rollout-failures
func TestAFailureByAnOwnConfigurationBringsNobodyPastTheRollout(t *testing.T) {
	for sentence, well := range map[string]bool{"control: it is well": true, "it failed": false} {
		t.Run(sentence, func(t *testing.T) {
			tmpl, rolled, own := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
			r := newToggles(tmpl, rolled)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.b.Spec.Configs = []addonv1beta1.AddOnConfig{own}
			r.passes(120, true, well)
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			r.passes(2, false, well)
			r.b.Spec.Configs = nil
			r.passes(4, false, well)
			assert.NotEqual(t, "r2", r.hash(r.b, rolled), "a has not proved it yet")
		})
	}
}

// Cluster a timed out, so that the rollout stopped. Its tenant names an own configuration and takes it off again.
//
// Shows: hub/rollout-failures
func TestWhoTimedOutStartsNoRolloutAgainByTurnsOfItsOwn(t *testing.T) {
	for _, plans := range []int{1, 2, 3} {
		tmpl, rolled, own := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
		r := newToggles(tmpl, rolled)
		r.plans = plans
		r.states[tmpl] = addonconfig.State{Hash: "new"}
		r.passes(120, true, true)
		r.states[rolled] = addonconfig.State{Hash: "r2"}
		r.passes(40, false, true)
		require.Equal(t, "r2", r.hash(r.a, rolled))
		require.True(t, isFailed(r.a))
		r.strategy().RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
		for range 4 {
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{own}
			r.passes(3, false, true)
			r.a.Spec.Configs = nil
			r.passes(3, false, true)
			require.NotEqual(t, "r2", r.hash(r.b, rolled), "%d plans for a pass", plans)
		}
		r.passes(60, true, true)
		assert.Equal(t, "r2", r.hash(r.b, rolled), "it goes on when a is well")
	}
}

// Cluster a has a configuration of its own, of a kind that the rollout does not give, and soaks. It takes that off and
// breaks.
//
// Shows: hub/rollout-soaked-other
func TestWhoTakesItsOwnConfigurationOffSkipsNoSoak(t *testing.T) {
	for sentence, takesOff := range map[string]func(r *toggles){
		"control: never":   func(r *toggles) { r.passes(1, false, true) },
		"with the break":   func(r *toggles) { r.a.Spec.Configs = nil },
		"before the break": func(r *toggles) { r.a.Spec.Configs = nil; r.passes(1, true, true) },
		"after the break":  func(r *toggles) { r.passes(1, false, true); r.a.Spec.Configs = nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			tmpl := fixture.Template("t")
			r := newToggles(tmpl)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("x")}
			r.passes(120, true, true)
			r.states[tmpl] = addonconfig.State{Hash: "v2"}
			r.passes(2, false, true)
			require.Equal(t, "v2", r.hash(r.a, tmpl))
			r.passes(3, true, true)
			require.Equal(t, "new", r.hash(r.b, tmpl), "a soaks")
			takesOff(r)
			for n := range 6 {
				r.passes(1, false, true)
				require.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: a is not well: %v", n, r.a.Status.Conditions)
			}
		})
	}
}

// Six clusters have a configuration of their own in the place of one of the rollout. One at a time, all failures are
// tolerated, and a content of the template breaks all. Then all own configurations are taken off at once, as a tool does:
// no add-on is created again, and what the rollout gives in their place was never on any of these clusters.
//
// Shows: hub/rollout-progressive
func TestOwnConfigurationsThatGoOnAllFailedClustersObeyTheLimit(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	for _, bad := range []bool{false, true} {
		t.Run(fmt.Sprintf("failed %t", bad), func(t *testing.T) {
			r := newThree(tmpl, rolled)
			p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			p.MaxConcurrency, p.MaxFailures, p.ProgressDeadline = intstr.FromInt32(1), intstr.FromString("100%"), "10m"
			names := []string{"a", "b", "c", "d", "e", "f"}
			addOns := map[string]*addonv1beta1.ManagedClusterAddOn{}
			for _, n := range names {
				a := r.c.DeepCopy()
				a.Namespace, a.Spec.Configs = n, []addonv1beta1.AddOnConfig{x}
				addOns[n] = a
			}
			pass := func(breaks string) {
				now := fixture.Noon().Add(r.after)
				r.after += 30 * time.Second
				var list []*addonv1beta1.ManagedClusterAddOn
				for _, n := range names {
					list = append(list, addOns[n])
				}
				r.planOf(now, names, list...)
				c := &Configurer{Admission: r.r.Admission}
				for _, n := range names {
					addOns[n] = c.Rehearse(r.cma, addOns[n], r.states, func(refs []addonv1beta1.ConfigReference) addon.Progress {
						work := fixture.Work("w", 3, refs)
						for _, ref := range refs {
							if breaks != "" && ref.DesiredConfig.SpecHash == breaks {
								work.Status.Conditions[1].Status = metav1.ConditionFalse
							}
						}
						return addon.Progress{Now: now, Works: []*workv1.ManifestWork{work}}
					})
				}
			}
			r.states[tmpl] = addonconfig.State{Hash: "v1"}
			for range 300 {
				pass("")
			}
			require.Equal(t, "v1", r.hash(addOns["f"], tmpl))
			if bad {
				r.states[tmpl] = addonconfig.State{Hash: "bad"}
				for range 300 {
					pass("bad")
				}
				require.Equal(t, "bad", r.hash(addOns["f"], tmpl))
				require.True(t, isFailed(addOns["f"]))
			}
			for _, n := range names {
				addOns[n] = addOns[n].DeepCopy()
				addOns[n].Spec.Configs = nil
			}
			pass("bad")
			got := 0
			for _, n := range names {
				if r.hash(addOns[n], rolled) != "" {
					got++
				}
			}
			assert.LessOrEqual(t, got, 1, "maxConcurrency is 1")
		})
	}
}
