package placement

import (
	"errors"
	"fmt"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// checkToleration returns what is wrong with a toleration.
func checkToleration(t clusterv1beta1.Toleration) error {
	switch t.Operator {
	case clusterv1beta1.TolerationOpExists:
		if t.Value != "" {
			return fmt.Errorf("value must be empty when operator is %s", t.Operator)
		}
	case clusterv1beta1.TolerationOpEqual, "":
		if t.Key == "" {
			return fmt.Errorf("key may only be empty when operator is %s", clusterv1beta1.TolerationOpExists)
		}
	default:
		return fmt.Errorf("operator %q is neither %s nor %s", t.Operator, clusterv1beta1.TolerationOpEqual,
			clusterv1beta1.TolerationOpExists)
	}
	if t.TolerationSeconds != nil && *t.TolerationSeconds < 0 {
		return errors.New("tolerationSeconds must not be negative")
	}
	return nil
}

// tolerates reports whether all taints of a cluster are tolerated, and the instant at which that ends; zero when it
// does not end. A taint NoSelectIfNew affects only clusters that are not selected yet.
func tolerates(
	tolerations []clusterv1beta1.Toleration, taints []clusterv1.Taint, selected bool, now time.Time,
) (bool, time.Time) {
	var ends time.Time
	for _, taint := range taints {
		switch {
		case taint.Effect == clusterv1.TaintEffectPreferNoSelect:
			continue
		case taint.Effect == clusterv1.TaintEffectNoSelectIfNew && selected:
			continue
		}
		added := taint.TimeAdded.Time
		if added.IsZero() {
			added = now // The hub manager is about to write the time.
		}
		tolerated, end, until := fleet.Tolerated(tolerations, taint, added)
		if !tolerated || (end && !now.Before(until)) {
			return false, time.Time{}
		}
		ends = reconcile.Earliest(ends, until)
	}
	return true, ends
}
