package configure

import (
	"testing"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// As TestAnOwnConfigurationStartsNoRolloutAgainThatStopped, and the user of a deletes its add-on and creates it again,
// where it names a configuration that does not exist. A cluster that may not move is "never one that had failed or
// timed out before" (docs/reference/hub.md).
//
// Shows: hub/rollout-failures
func TestAnAddOnThatIsCreatedAgainStartsNoRolloutAgainThatStopped(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: it names none":         nil,
		"control: it names a known one":  {fixture.DeploymentConfig("x")},
		"it names one of unknown hash":   {fixture.ConfigMap("c")},
		"it names one that is not there": {fixture.DeploymentConfig("none")},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
			r.a.UID = "first"
			fresh := r.a.DeepCopy()
			r.breaks(t, tmpl)
			r.a = fresh
			r.a.UID, r.a.Spec.Configs = "again", own
			r.a.Status = addonv1beta1.ManagedClusterAddOnStatus{SupportedConfigs: fresh.Status.SupportedConfigs}
			for n := range 60 {
				r.pass("bad")
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
