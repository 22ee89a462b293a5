package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// No failure is tolerated. Cluster a has had a configuration of its own for an hour, and was done. Its user names another
// one of that kind, with which it never gets well: that is no matter of the rollout. The rollout then has a new content of
// the kind, which a does not get.
//
// Shows: hub/rollout-soaked-other
func TestWhoBrokeByAnOwnConfigurationStopsNoRolloutThatGivesItNothing(t *testing.T) {
	tmpl, rolled, x, y := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x"), fixture.DeploymentConfig("y")
	for sentence, changes := range map[string]bool{
		"control: a has y, and is well": false, "a has y, and is not well": true,
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRace(tmpl, rolled)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{x}
			after := time.Duration(0)
			hour := func(aWell bool) {
				for end := after + time.Hour; after < end; after += 30 * time.Second {
					r.plan(fixture.Noon().Add(after))
					r.each(fixture.Noon().Add(after), aWell)
				}
			}
			hour(true)
			require.Equal(t, "rolled", r.hash(r.b, rolled))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{y}
			hour(!changes)
			t.Log(meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked))
			had := r.a.Status.ConfigReferences
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			hour(!changes)
			for i := range had {
				assert.Equal(t, had[i].DesiredConfig, r.a.Status.ConfigReferences[i].DesiredConfig, "a gets nothing")
			}
			t.Log(meta.FindStatusCondition(r.b.Status.Conditions, "Configured"))
			assert.Equal(t, "r2", r.hash(r.b, rolled), "b waits for a, to which the rollout gives nothing")
		})
	}
}

func (r *race) planOf(now time.Time, selected []string, addOns ...*addonv1beta1.ManagedClusterAddOn) {
	decisions := decidedLongAgo(selected...)
	r.r.Rehearse(rollout.World{
		Now: now, CMA: r.cma, Placements: []*fleet.Decisions{decisions}, AddOns: addOns, States: r.states,
	})
}

// No failure is tolerated. The spec of the add-on of a names a ConfigMap. Its manager, which was down, reports the hash
// half an hour after a had its turn; the works are there a minute later. Meanwhile cluster b is new and waits for its turn.
//
// Shows: hub/rollout-unknown-hash
func TestAHashThatIsReportedLateIsNoFailure(t *testing.T) {
	for sentence, late := range map[string]time.Duration{"control: after a minute": time.Minute, "after half an hour": 30 * time.Minute} {
		t.Run(sentence, func(t *testing.T) {
			tmpl, own := fixture.Template("t"), fixture.ConfigMap("c")
			r := newRace(tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
			r.states[own] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{own}
			after := time.Duration(0)
			b := r.b
			for ; after < late; after += 30 * time.Second {
				r.planOf(fixture.Noon().Add(after), []string{"a"}, r.a)
				r.each(fixture.Noon().Add(after), true)
			}
			require.Equal(t, "new", r.hash(r.a, tmpl))
			r.a = r.a.DeepCopy()
			for i := range r.a.Status.ConfigReferences {
				if reference := &r.a.Status.ConfigReferences[i]; reference.Resource == "configmaps" {
					reference.DesiredConfig.SpecHash = "reported"
				}
			}
			// The works follow in a minute.
			r.planOf(fixture.Noon().Add(after), []string{"a"}, r.a)
			r.each(fixture.Noon().Add(after), false)
			after += 30 * time.Second
			r.b = b
			r.planOf(fixture.Noon().Add(after), []string{"a", "b"}, r.a, r.b)
			admission := r.r.Admission(r.b, []addonv1beta1.ConfigReference{fixture.Desires(tmpl, "new")})
			t.Log(meta.FindStatusCondition(r.a.Status.Conditions, "Progressing"), admission.Reason)
			assert.True(t, admission.Granted, "two may move at a time, and a is on its way for 30 seconds, of 10 minutes")
		})
	}
}

// When nothing changes, nothing is written.
func TestStatusesRest(t *testing.T) {
	tmpl, rolled, x, c, m := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x"), fixture.ConfigMap("c"), fixture.ConfigMap("m")
	for _, beneath := range [][]addonv1beta1.AddOnConfig{{tmpl}, {tmpl, rolled}, {tmpl, m}, {tmpl, rolled, m}, {m}, {rolled}} {
		for _, own := range [][]addonv1beta1.AddOnConfig{nil, {x}, {c}, {x, c}, {fixture.DeploymentConfig("none")}, {fixture.Template("own"), c}} {
			for _, missing := range []bool{false, true} {
				for _, aWell := range []bool{false, true} {
					r := newRace(beneath...)
					r.states[tmpl] = addonconfig.State{Hash: "new"}
					r.states[c] = addonconfig.State{Unread: "unread"}
					r.states[m] = addonconfig.State{Unread: "unread"}
					r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
					if missing {
						r.states[rolled] = addonconfig.State{Missing: true}
					}
					r.a.Spec.Configs = own
					after := time.Duration(0)
					pass := func(n int) { r.passes(&after, n, aWell) }
					pass(120)
					wasA, wasB := r.a.Status, r.b.Status
					pass(20)
					assert.Equal(t, wasA, r.a.Status, "%v %v %v", beneath, own, missing)
					assert.Equal(t, wasB, r.b.Status)
				}
			}
		}
	}
}

// One cluster moves at a time, and no failure is tolerated. The add-ons of both clusters are new, and each names a
// ConfigMap of its own. Their manager reports a hash a second after the status names it. With the template, cluster a
// does not get well.
//
// Shows: hub/rollout-unknown-hash
func TestClustersWithOwnConfigurationsMoveOneAtATime(t *testing.T) {
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: they name none": nil, "each names one": {fixture.ConfigMap("c")},
	} {
		t.Run(sentence, func(t *testing.T) {
			tmpl, config := fixture.Template("t"), fixture.ConfigMap("c")
			r := newRace(tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
			r.states[config] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs, r.b.Spec.Configs = own, own
			named := map[string]time.Duration{}
			report := func(addOn *addonv1beta1.ManagedClusterAddOn, after time.Duration) *addonv1beta1.ManagedClusterAddOn {
				addOn = addOn.DeepCopy()
				for i := range addOn.Status.ConfigReferences {
					if reference := &addOn.Status.ConfigReferences[i]; reference.Resource == "configmaps" && reference.DesiredConfig.SpecHash == "" {
						if since, known := named[addOn.Namespace]; !known {
							named[addOn.Namespace] = after
						} else if after >= since+time.Second {
							reference.DesiredConfig.SpecHash = "reported"
						}
					}
				}
				return addOn
			}
			for after := time.Duration(0); after < time.Minute; after += 400 * time.Millisecond {
				r.plan(fixture.Noon().Add(after))
				r.each(fixture.Noon().Add(after), false)
				r.a, r.b = report(r.a, after), report(r.b, after)
				if !assert.False(t, r.hash(r.a, tmpl) == "new" && r.hash(r.b, tmpl) == "new",
					"after %s both have the template, of which one may move at a time; Progressing of a: %v", after,
					meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					return
				}
			}
			assert.True(t, r.hash(r.a, tmpl) == "new" || r.hash(r.b, tmpl) == "new", "nobody moves")
			assert.True(t, own == nil || len(named) > 0)
		})
	}
}

// Cluster a is admitted and does not become well. Its user names a configuration of its own and takes it back, in turns.
//
// Shows: hub/rollout-own-turns
func TestAnOwnConfigurationWithoutAHashInTurnsDatesNoProgress(t *testing.T) {
	for sentence, own := range map[string]addonv1beta1.AddOnConfig{
		"control: of a known hash": fixture.DeploymentConfig("x"), "of an unknown hash": fixture.ConfigMap("c"),
	} {
		t.Run(sentence, func(t *testing.T) {
			tmpl := fixture.Template("t")
			r := newRace(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			after := time.Duration(0)
			pass := func(n int) { r.passes(&after, n, false) }
			pass(2)
			require.Equal(t, "new", r.hash(r.a, tmpl))
			since := meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").LastTransitionTime
			for range 5 {
				pass(14)
				r.a.Spec.Configs = []addonv1beta1.AddOnConfig{own}
				pass(2)
				r.a.Spec.Configs = nil
				pass(2)
				if !assert.Equal(t, since, meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").LastTransitionTime, after) {
					return
				}
			}
		})
	}
}

// The same, as soon as the status names it, which the planner, who looks five times a second at most, does not see. All
// failures are tolerated, so that b has its turn after the ten minutes of a.
//
// Shows: hub/rollout-own-turns
func TestAnOwnConfigurationWithoutAHashInTurnsHoldsNoOtherCluster(t *testing.T) {
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: none": nil, "control: of a known hash": {fixture.DeploymentConfig("x")}, "of an unknown hash": {fixture.ConfigMap("c")},
	} {
		t.Run(sentence, func(t *testing.T) {
			tmpl := fixture.Template("t")
			r := newRace(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			after := time.Duration(0)
			for after < 2*time.Hour {
				for range 18 {
					r.plan(fixture.Noon().Add(after))
					r.each(fixture.Noon().Add(after), false)
					after += 30 * time.Second
				}
				r.a.Spec.Configs = own
				r.each(fixture.Noon().Add(after), false)
				r.a.Spec.Configs = nil
			}
			assert.Equal(t, "new", r.hash(r.b, tmpl), "b waits since two hours for a, which has ten minutes")
		})
	}
}
