package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/rollout-turns
func TestWhoTakesTurnsIsRememberedSinceItWasCompleteAtFirst(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	f := soaking(references)
	pass := func(after time.Duration, well bool) *metav1.Condition {
		work := fixture.Work("w", 3, references)
		if !well {
			work.Status.Conditions[1].Status = metav1.ConditionFalse
		}
		addOn := f.addOn.DeepCopy()
		record(f, decide(f), addOn, worksFacts{works: []*workv1.ManifestWork{work}}, fixture.Noon().Add(after))
		f.addOn = addOn
		return meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionSoaked)
	}
	assert.Nil(t, pass(0, false))
	assert.Nil(t, pass(time.Second, true))
	for turn := 1; turn < 100; turn++ {
		c := pass(time.Duration(turn)*4*time.Second, turn%2 == 0)
		assert.Equal(t, metav1.ConditionFalse, c.Status)
		assert.Equal(t, fixture.Noon().Add(time.Second), c.LastTransitionTime.Time)
	}
	assert.Equal(t, metav1.ConditionFalse, pass(time.Hour, true).Status)
	assert.Equal(t, metav1.ConditionTrue, pass(2*time.Hour, false).Status, "it had soaked")
	assert.Equal(t, metav1.ConditionTrue, pass(3*time.Hour, true).Status)
	assert.Equal(t, metav1.ConditionTrue, pass(3*time.Hour+time.Minute, false).Status)
	assert.NotNil(t, f.addOn.Status.ConfigReferences[0].LastAppliedConfig, "and what is applied stays applied")

	f.states = addonconfig.States{fixture.Template("t"): {Hash: "next"}}
	assert.Nil(t, pass(4*time.Hour, false), "another content begins again")
}
