package join

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// conclude returns the condition that is true after the pass; nil leaves it as it is. A certificate that is not stored
// is not called rotated.
func conclude(answer issue.Plan, actErr error) *metav1.Condition {
	switch {
	case actErr == nil:
		return answer.Condition
	case reconcile.IsLostRace(actErr):
		return nil
	}
	return issue.NotStored(actErr.Error())
}

// progress explains to people why the agent still waits: the failure, else why there is no certificate, else who has to
// act.
func progress(cluster string, plan issue.Plan, failures ...error) string {
	if err := errors.Join(failures...); err != nil && !reconcile.IsLostRace(err) {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if plan.Condition != nil && plan.Condition.Status == metav1.ConditionFalse {
		return plan.Condition.Message
	}
	if plan.Step == issue.StepTake {
		return "the hub issued the certificate of cluster " + cluster
	}
	return "waiting until the hub approves the certificate request of cluster " + cluster
}
