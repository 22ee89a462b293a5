package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// A template is applied on cluster a, and its agent is not available from the first minute on: a failed, and the rollout
// stops. Half an hour later the user of a names a configuration in the spec of its add-on. Clusters b and c must not get
// the template: a is not well, and it never was with that.
//
// Shows: hub/rollout-failures
func TestAnOwnConfigurationStartsNoRolloutAgainThatStoppedBecauseAnAgentIsNotAvailable(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, tc := range map[string]struct {
		own     []addonv1beta1.AddOnConfig
		restart int
	}{
		"control: none":                  {restart: 2},
		"one that does not exist":        {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}, restart: -1},
		"of an unknown hash":             {own: []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}, restart: -1},
		"of a known hash":                {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("x")}, restart: -1},
		"of an unknown hash, a restart":  {own: []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}, restart: 2},
		"that does not exist, a restart": {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}, restart: 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			for range 120 {
				r.pass("")
			}
			require.Equal(t, "new", r.hash(r.c, tmpl))
			r.states[tmpl] = addonconfig.State{Hash: "bad"}
			fails := fixture.Noon().Add(r.after + time.Minute)
			for n := range 60 {
				if n == 2 {
					r.a = fixture.With(r.a, fixture.Condition("Available", metav1.ConditionFalse, "Broken", fails))
				}
				r.pass("")
			}
			require.Equal(t, "bad", r.hash(r.a, tmpl))
			require.Equal(t, "new", r.hash(r.b, tmpl), "the rollout stopped")
			r.a.Spec.Configs = tc.own
			for n := range 60 {
				if n == tc.restart {
					r.r = &rollout.Reconciler{}
				}
				r.pass("")
				if !assert.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: b gets what breaks a; Progressing of a: %v, Soaked: %v", n,
					meta.FindStatusCondition(r.a.Status.Conditions, "Progressing"),
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked)) {
					return
				}
			}
		})
	}
}

// The same, and no user does anything: half an hour later the works of a are not ready either.
//
// Shows: hub/rollout-failures
func TestWorksThatBreakStartNoRolloutAgainThatStoppedBecauseAnAgentIsNotAvailable(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, breaks := range map[string]string{"control: they stay as they are": "", "they break": "bad"} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			for range 120 {
				r.pass("")
			}
			require.Equal(t, "new", r.hash(r.c, tmpl))
			r.states[tmpl] = addonconfig.State{Hash: "bad"}
			fails := fixture.Noon().Add(r.after + time.Minute)
			for n := range 60 {
				if n == 2 {
					r.a = fixture.With(r.a, fixture.Condition("Available", metav1.ConditionFalse, "Broken", fails))
				}
				r.pass("")
			}
			require.Equal(t, "bad", r.hash(r.a, tmpl))
			require.Equal(t, "new", r.hash(r.b, tmpl), "the rollout stopped")
			for n := range 60 {
				r.pass(breaks)
				if !assert.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: b gets what breaks a; Soaked of a: %v", n,
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked)) {
					return
				}
			}
		})
	}
}
