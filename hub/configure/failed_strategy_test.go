package configure

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainThatStopped, and before the user of a names a configuration, the strategy
// has a typing error for half a minute, during which nothing is admitted.
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
			r.breaks(t, tmpl)
			progressive := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			progressive.MaxFailures = maxFailures
			r.pass("bad")
			progressive.MaxFailures = intstr.FromInt32(0)
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("none")}
			for n := range 60 {
				r.pass("bad")
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
