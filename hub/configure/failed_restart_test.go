package configure

import (
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainThatStopped, and the hub manager starts again.
//
// Shows: hub/rollout-failures
func TestAnOwnConfigurationStartsNoRolloutAgainAfterARestart(t *testing.T) {
	tmpl := fixture.Template("t")
	unread := []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}
	for sentence, tc := range map[string]struct {
		own     []addonv1beta1.AddOnConfig
		restart int
	}{
		"control: none":                 {restart: 2},
		"control: of a known hash":      {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("x")}, restart: 2},
		"of an unknown hash":            {own: unread, restart: 2},
		"of an unknown hash, at once":   {own: unread, restart: 0},
		"one that does not exist":       {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}, restart: 2},
		"one that does not exist, once": {own: []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}, restart: 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
			r.breaks(t, tmpl)
			r.a.Spec.Configs = tc.own
			for n := range 120 {
				if n == tc.restart {
					r.r = &rollout.Reconciler{}
				}
				r.pass("bad")
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
