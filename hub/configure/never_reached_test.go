package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Cluster a is given a content of the rollout, and its user replaces that before it is complete. Later he takes the
// own one off. The content was never complete on a, so it cannot have soaked there.
//
// Shows: hub/rollout-soaked-other
func TestAContentThatNeverWasCompleteHasNotSoaked(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	own := []addonv1beta1.AddOnConfig{x}
	for sentence, tried := range map[string]int{"control: it never got it": 0, "it got it, and it broke": 1, "it got it for some passes": 5} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl, rolled)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			if tried == 0 {
				r.a.Spec.Configs = own
			}
			for range 120 {
				r.pass("")
			}
			require.Equal(t, "rolled", r.hash(r.c, rolled))
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			for range tried {
				r.pass("r2")
			}
			r.a.Spec.Configs = own
			// a is complete with x, and soaks.
			n := 0
			for ; r.hash(r.c, rolled) == "rolled" && r.hash(r.b, rolled) == "rolled"; n++ {
				r.pass("r2")
				require.Less(t, n, 100)
			}
			require.Equal(t, "rolled", r.hash(r.c, rolled))
			r.a.Spec.Configs = nil
			for range 60 {
				r.pass("r2")
				if !assert.Equal(t, "rolled", r.hash(r.c, rolled), "c gets r2, which breaks a; Soaked of a: %v, Progressing %v",
					meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked),
					meta.FindStatusCondition(r.a.Status.Conditions, "Progressing")) {
					return
				}
			}
			assert.Equal(t, "r2", r.hash(r.a, rolled))
		})
	}
}
