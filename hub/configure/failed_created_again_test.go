package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
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
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.UID = "first"
			fresh := r.a.DeepCopy()
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
			r.a = fresh
			r.a.UID, r.a.Spec.Configs = "again", own
			r.a.Status = addonv1beta1.ManagedClusterAddOnStatus{SupportedConfigs: fresh.Status.SupportedConfigs}
			for n := range 60 {
				r.pass("bad")
				if !assert.Equal(t, "new", r.hash(r.b, tmpl), "pass %d: b gets what breaks a; a has %v, Progressing of a: %v",
					n, r.a.Status.ConfigReferences, meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					return
				}
			}
		})
	}
}
