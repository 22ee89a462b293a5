package configure

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A template is applied on cluster a, and its agent is not available from the first minute on: a failed. Half an hour
// later nothing is heard of it any more: Available is Unknown. It "has not been available since".
//
// Shows: hub/rollout-failures
func TestAFailedAgentThatIsNotHeardOfAnyMoreIsNotWell(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, status := range map[string]metav1.ConditionStatus{
		"control: it stays not available": metav1.ConditionFalse, "nothing is heard of it": metav1.ConditionUnknown,
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.loses(t, tmpl)
			r.a.Status.Conditions = append([]metav1.Condition(nil), r.a.Status.Conditions...)
			for i := range r.a.Status.Conditions {
				if c := &r.a.Status.Conditions[i]; c.Type == "Available" && status != c.Status {
					c.Status, c.LastTransitionTime = status, metav1.NewTime(fixture.Noon().Add(r.after))
				}
			}
			for n := range 60 {
				r.pass("")
				if !r.stays(t, tmpl, n) {
					return
				}
			}
		})
	}
}
