package configure

import (
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
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
			r.loses(t, tmpl)
			r.a.Spec.Configs = tc.own
			for n := range 60 {
				if n == tc.restart {
					r.r = &rollout.Reconciler{}
				}
				r.pass("")
				if !r.stays(t, tmpl, n) {
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
			r.loses(t, tmpl)
			for n := range 60 {
				r.pass(breaks)
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
