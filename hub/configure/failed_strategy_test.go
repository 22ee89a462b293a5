package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainThatStopped, and before the user of a names a configuration, the strategy
// has a typing error for half a minute, while which nothing is admitted.
//
// Shows: hub/rollout-failures
func TestATypingErrorInTheStrategyExcusesNoFailure(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, maxFailures := range map[string]intstr.IntOrString{
		"control: there is none": intstr.FromInt32(0), "there is one": intstr.FromString("none"),
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
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
			progressive := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			progressive.MaxFailures = maxFailures
			r.pass("bad")
			progressive.MaxFailures = intstr.FromInt32(0)
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}
			for n := range 60 {
				r.pass("bad")
				if !assert.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: b gets what breaks a; Progressing of a: %v",
					n, meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					return
				}
			}
		})
	}
}
