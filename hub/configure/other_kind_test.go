package configure

import (
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainAfterARestart, and the add-on of a had a configuration of its own before,
// of another kind, in place of which its user names one that does not exist.
//
// Shows: hub/rollout-failures
func TestAnOwnConfigurationOfAnotherKindStartsNoRolloutAgainAfterARestart(t *testing.T) {
	tmpl, x := fixture.Template("t"), fixture.DeploymentConfig("x")
	none := fixture.ConfigMap("none")
	for sentence, tc := range map[string]struct {
		own     []addonv1beta1.AddOnConfig
		restart int
	}{
		"control: beside that one":              {own: []addonv1beta1.AddOnConfig{x, none}, restart: 2},
		"control: in its place, and no restart": {own: []addonv1beta1.AddOnConfig{none}, restart: -1},
		"in its place":                          {own: []addonv1beta1.AddOnConfig{none}, restart: 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[none] = addonconfig.State{Missing: true}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{x}
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
