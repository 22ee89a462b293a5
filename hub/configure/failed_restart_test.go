package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
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
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			for range 120 {
				r.pass("")
			}
			require.Equal(t, "new", r.hash(r.c, tmpl))
			r.states[tmpl] = addonconfig.State{Hash: "bad"}
			for range 40 {
				r.pass("bad")
			}
			require.Equal(t, "bad", r.hash(r.a, tmpl))
			require.Equal(t, "new", r.hash(r.b, tmpl), "the rollout stopped")
			r.a.Spec.Configs = tc.own
			for n := range 120 {
				if n == tc.restart {
					r.r = &rollout.Reconciler{}
				}
				r.pass("bad")
				if !assert.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: b gets what breaks a; Progressing of a: %v", n,
					meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					return
				}
			}
		})
	}
}
