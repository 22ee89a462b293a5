package configure

import (
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainThatStopped, and the add-on of a had a configuration of its own in place of
// one of the rollout. Its user names one of another kind in its place, which does not exist, so that a would get that of
// the rollout, and is held. Cluster a still has the template that breaks it, and the hub manager does not start again.
//
// Shows: hub/rollout-failures
func TestAnOwnConfigurationThatGoesForOneThatDoesNotExistStartsNoRolloutAgain(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	none := fixture.ConfigMap("none")
	for sentence, tc := range map[string]struct{ own []addonv1beta1.AddOnConfig }{
		"control: it stays as it is": {own: []addonv1beta1.AddOnConfig{x}},
		"control: beside it":         {own: []addonv1beta1.AddOnConfig{x, none}},
		"in its place":               {own: []addonv1beta1.AddOnConfig{none}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl, rolled)
			r.states[none] = addonconfig.State{Missing: true}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{x}
			r.breaks(t, tmpl)
			r.a.Spec.Configs = tc.own
			for n := range 120 {
				r.pass("bad")
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
