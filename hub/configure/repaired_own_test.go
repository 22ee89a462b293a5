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

// Cluster a is on its way for a minute when its spec names a configuration that is not there (or has no known hash). An
// hour later it is. The new configuration is rolled out on a since a minute, of 10, so that a has not failed, and c, whose
// add-on is new, gets its turn: two may move at a time.
//
// Shows: hub/rollout-failures
func TestWhoRepairsAConfigurationThatDoesNotExistIsNotTimedOutAtOnce(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, config := range map[string]addonv1beta1.AddOnConfig{
		"control: of an unknown hash": fixture.ConfigMap("c"), "one that does not exist": fixture.DeploymentConfig("none"),
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
			r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			fresh := r.c.DeepCopy()
			fresh.UID = "again"
			for range 120 {
				r.pass("")
			}
			r.states[tmpl] = addonconfig.State{Hash: "v2"}
			r.pass("v2")
			r.pass("v2")
			require.Equal(t, "v2", r.hash(r.a, tmpl))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{config}
			for range 120 {
				r.pass("v2")
			}
			require.Equal(t, "v2", r.hash(r.c, tmpl), "a holds nobody")
			r.states[config] = addonconfig.State{Hash: "there"}
			r.pass("v2")
			require.Equal(t, "there", r.hash(r.a, config))
			r.c = fresh
			r.pass("v2")
			r.pass("v2")
			assert.Equal(t, "v2", r.hash(r.c, tmpl), "a has what its spec names for a minute, of 10; Progressing of a: %v",
				meta.FindStatusCondition(r.a.Status.Conditions, "Progressing"))
		})
	}
}
