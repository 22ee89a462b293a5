package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// three is a race of three clusters. No failure is tolerated.
type three struct {
	*race
	c     *addonv1beta1.ManagedClusterAddOn
	after time.Duration
}

func newThree(rolled ...addonv1beta1.AddOnConfig) *three {
	r := &three{race: newRace(rolled...)}
	r.c = r.b.DeepCopy()
	r.c.Namespace = "c"
	r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
	return r
}

// pass plans and configures; a content with the hash breaks cluster a.
func (r *three) pass(breaks string) {
	now := fixture.Noon().Add(r.after)
	r.after += 30 * time.Second
	r.planOf(now, []string{"a", "b", "c"}, r.a, r.b, r.c)
	c := &Configurer{Admission: r.r.Admission}
	progress := func(breaks string) func([]addonv1beta1.ConfigReference) addon.Progress {
		return func(references []addonv1beta1.ConfigReference) addon.Progress {
			work := fixture.Work("w", 3, references)
			for _, reference := range references {
				if breaks != "" && reference.DesiredConfig.SpecHash == breaks {
					work.Status.Conditions[1].Status = metav1.ConditionFalse
				}
			}
			return addon.Progress{Now: now, Works: []*workv1.ManifestWork{work}}
		}
	}
	r.a = c.Rehearse(r.cma, r.a, r.states, progress(breaks))
	r.b = c.Rehearse(r.cma, r.b, r.states, progress(""))
	r.c = c.Rehearse(r.cma, r.c, r.states, progress(""))
}

// stops rolls a content of the template out to all clusters, and then one on which the rollout stops at cluster a, in
// some passes.
func (r *three) stops(t *testing.T, tmpl addonv1beta1.AddOnConfig, passes int, pass func(n int)) {
	t.Helper()
	r.states[tmpl] = addonconfig.State{Hash: "new"}
	for range 120 {
		r.pass("")
	}
	require.Equal(t, "new", r.hash(r.c, tmpl))
	r.states[tmpl] = addonconfig.State{Hash: "bad"}
	for n := range passes {
		pass(n)
	}
	require.Equal(t, "bad", r.hash(r.a, tmpl))
	require.Equal(t, "new", r.hash(r.b, tmpl), "the rollout stopped")
}

// breaks stops a rollout by a content that breaks cluster a, which times out.
func (r *three) breaks(t *testing.T, tmpl addonv1beta1.AddOnConfig) {
	t.Helper()
	r.stops(t, tmpl, 40, func(int) { r.pass("bad") })
}

// breaksWhileItSoaks stops a rollout by a content that breaks cluster a when it has it for a minute, in some passes.
func (r *three) breaksWhileItSoaks(t *testing.T, tmpl addonv1beta1.AddOnConfig, passes int) {
	t.Helper()
	r.stops(t, tmpl, passes, func(n int) {
		if n < 3 {
			r.pass("")
		} else {
			r.pass("bad")
		}
	})
}

// loses stops a rollout by an agent of cluster a that is not available from the first minute on.
func (r *three) loses(t *testing.T, tmpl addonv1beta1.AddOnConfig) {
	t.Helper()
	var fails time.Time
	r.stops(t, tmpl, 60, func(n int) {
		if n == 0 {
			fails = fixture.Noon().Add(r.after + time.Minute)
		}
		if n == 2 {
			r.a = fixture.With(r.a, fixture.Condition("Available", metav1.ConditionFalse, "Broken", fails))
		}
		r.pass("")
	})
}

// stays reports whether cluster b still has what it had before the content that stopped the rollout.
func (r *three) stays(t *testing.T, tmpl addonv1beta1.AddOnConfig, n int) bool {
	t.Helper()
	return assert.Equal(t, "new", r.hash(r.b, tmpl),
		"pass %d: b gets what breaks a, which has %v; its Progressing: %v, Soaked: %v", n, r.a.Status.ConfigReferences,
		meta.FindStatusCondition(r.a.Status.Conditions, "Progressing"),
		meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked))
}

// staysFor requires in each of some passes, in which a content breaks cluster a, that cluster b stays at what it had.
func (r *three) staysFor(t *testing.T, tmpl addonv1beta1.AddOnConfig, passes int, breaks string) {
	t.Helper()
	for n := range passes {
		r.pass(breaks)
		if !r.stays(t, tmpl, n) {
			t.FailNow()
		}
	}
}

// Cluster a runs with a configuration of its own. While the rollout gives the others another content of that kind, its
// user takes the own one off, so that a gets that content, for the first time. It breaks a. No failure is tolerated, so c
// must not get it. (TestAContentThatReplacesAnOwnOneIsNotDoneAtOnce has the same without a pass in between.)
//
// Shows: hub/rollout-soaked-other
func TestAContentThatAClusterNeverHadHasNotSoakedThere(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	own := []addonv1beta1.AddOnConfig{x}
	for sentence, passes := range map[string]int{"control: at once": 0, "in the next minute": 2} {
		t.Run("another content is rolled out, and the own one goes "+sentence, func(t *testing.T) {
			r := newThree(tmpl, rolled)
			r.a.Spec.Configs = own
			for range 120 {
				r.pass("")
			}
			require.Equal(t, "rolled", r.hash(r.c, rolled))
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			for range passes {
				r.pass("")
			}
			require.Equal(t, "rolled", r.hash(r.c, rolled), "b soaks")
			r.a.Spec.Configs = nil
			for range 60 {
				r.pass("r2")
				if !assert.Equal(t, "rolled", r.hash(r.c, rolled), "c gets r2, which breaks a; Soaked of a: %v",
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked)) {
					return
				}
			}
			assert.Equal(t, "r2", r.hash(r.a, rolled))
		})
	}
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{"control: it had none of its own": nil, "it had one of its own": own} {
		t.Run("the first content is rolled out, and "+sentence, func(t *testing.T) {
			r := newThree(tmpl, rolled)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs = own
			for range 13 {
				r.pass("rolled")
			}
			require.Empty(t, r.hash(r.c, rolled), "b soaks, or a breaks")
			r.a.Spec.Configs = nil
			for range 60 {
				r.pass("rolled")
				if !assert.Empty(t, r.hash(r.c, rolled), "c gets what breaks a; Soaked of a: %v",
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked)) {
					return
				}
			}
			assert.Equal(t, "rolled", r.hash(r.a, rolled))
		})
	}
}

// TestAHashThatIsReportedLateIsNoFailure, and another configuration of the add-on itself is replaced (deleted and created
// again with the same content) after the hash was reported.
//
// Shows: hub/rollout-unknown-hash
func TestAHashThatIsReportedLateIsNoFailureThoughAConfigurationIsReplaced(t *testing.T) {
	for sentence, replaced := range map[string]bool{"control: it is not": false, "it is replaced": true} {
		t.Run(sentence, func(t *testing.T) {
			tmpl, own, d := fixture.Template("t"), fixture.ConfigMap("c"), fixture.DeploymentConfig("d")
			r := newRace(tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxFailures = intstr.FromInt32(0)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
			r.states[own] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[tmpl], r.states[d] = addonconfig.State{Hash: "new"}, addonconfig.State{Hash: "d"}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{own, d}
			b, after := r.b, time.Duration(0)
			pass := func(well bool, selected ...string) {
				all := []*addonv1beta1.ManagedClusterAddOn{r.a, b}[:len(selected)]
				r.planOf(fixture.Noon().Add(after), selected, all...)
				r.each(fixture.Noon().Add(after), well)
				after += 30 * time.Second
			}
			for after < 30*time.Minute {
				pass(true, "a")
			}
			r.a = r.a.DeepCopy()
			for i := range r.a.Status.ConfigReferences {
				if reference := &r.a.Status.ConfigReferences[i]; reference.Resource == "configmaps" {
					reference.DesiredConfig.SpecHash = "reported"
				}
			}
			pass(false, "a")
			r.states[d] = addonconfig.State{Missing: replaced, Hash: map[bool]string{false: "d"}[replaced]}
			pass(false, "a")
			r.states[d] = addonconfig.State{Hash: "d"}
			pass(false, "a")
			pass(false, "a", "b")
			admission := r.r.Admission(b, []addonv1beta1.ConfigReference{fixture.Desires(tmpl, "new")})
			t.Log(meta.FindStatusCondition(r.a.Status.Conditions, "Progressing"), admission.Reason)
			assert.True(t, admission.Granted, "two may move at a time, and a is on its way for two minutes, of 10")
		})
	}
}

// A template breaks cluster a, which times out, and the rollout stops: no failure is tolerated. Then the user of a names
// a configuration in the spec of its add-on. Clusters b and c must not get the template: a is not well, and there is no
// other configuration of the rollout.
//
// Shows: hub/rollout-failures
func TestAnOwnConfigurationStartsNoRolloutAgainThatStopped(t *testing.T) {
	tmpl := fixture.Template("t")
	unread := []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}
	for sentence, tc := range map[string]struct {
		own      []addonv1beta1.AddOnConfig
		reported bool
	}{
		"control: none":                          {},
		"control: of a known hash":               {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("x")}},
		"of an unknown hash":                     {own: unread},
		"of a hash that is reported in a minute": {own: unread, reported: true},
		"one that does not exist":                {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.breaks(t, tmpl)
			r.a.Spec.Configs = tc.own
			for n := range 60 {
				r.pass("bad")
				if n == 2 && tc.reported {
					r.a = r.a.DeepCopy()
					require.Equal(t, "configmaps", r.a.Status.ConfigReferences[0].Resource)
					r.a.Status.ConfigReferences[0].DesiredConfig.SpecHash = "reported"
				}
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
