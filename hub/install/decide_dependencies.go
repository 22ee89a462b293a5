package install

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// maxDependents is how many dependents a sentence names.
const maxDependents = 5

// dependencyFacts are what the policies of a hub say of one add-on.
type dependencyFacts struct {
	// knows reports whether policies are read.
	knows bool
	// brings reports whether the policy of another add-on brings this one along, on whatever cluster, or has done so as
	// far as this process saw it.
	brings bool
	// cycle is one that the add-on is in; empty for none.
	cycle string
	// gate has the policy of the add-on itself, and its windows.
	gate gate.Gate
	// unknown is why that is not known; nil when it is.
	unknown error
}

// isBrought reports whether the policy of another add-on brought an add-on along, and no placement selects it.
func isBrought(addon metav1.Object) bool {
	return addon.GetLabels()[names.LabelInstalledBy] == names.InstalledByDependency
}

// isOurs reports whether this reconciler installed an add-on, for placements or for other add-ons.
func isOurs(addon metav1.Object) bool {
	return addon.GetLabels()[names.LabelInstalledBy] == names.InstalledByPlacement || isBrought(addon)
}

// keepsBrought returns why an add-on stays that other add-ons brought along, whether or not one does now.
func (f fleetFacts) keepsBrought() error {
	switch {
	case !f.others.knows:
		return errors.New("AddOnPolicies are not in force, so that it is not known which add-ons bring it along")
	case f.others.cycle != "":
		return fmt.Errorf("its dependencies are a cycle, so that it is not known which add-ons bring it along: %s",
			f.others.cycle)
	}
	return nil
}

// goesLater returns why an add-on that goes from a cluster stays for now: others go first, or its windows are closed.
// The removal of a cluster does not wait. The instant is when to look again; zero when an event tells.
func (f fleetFacts) goesLater(c candidate) (time.Time, error) {
	if c.managed == nil || !c.managed.DeletionTimestamp.IsZero() {
		return time.Time{}, nil
	}
	switch {
	case f.others.unknown != nil:
		return time.Time{}, f.others.unknown
	case len(c.others.Bring) > 0:
		return time.Time{}, nil
	case len(c.others.Hold) > 0:
		return time.Time{}, fmt.Errorf("add-ons that depend on it are on the same clusters and go first: %s",
			message.List(c.others.Hold, maxDependents, ", "))
	}
	v := f.others.gate.JudgeRemoval(gate.ClusterOf(c.managed), c.absence.noted, f.now)
	if v.Held == "" {
		return time.Time{}, nil
	}
	return v.Wake, &closedError{c.cluster, v.Held}
}

// closedError says that the windows of a cluster are closed.
type closedError struct{ cluster, why string }

// Error implements error.
func (e *closedError) Error() string {
	return fmt.Sprintf("their windows do not let them go, such as that of cluster %s: %s", e.cluster, e.why)
}

// later takes into account why an add-on stays until an instant. That of a window is told, once for all clusters.
func (r *removals) later(why error) {
	if closed := (*closedError)(nil); errors.As(why, &closed) && r.closed == nil {
		r.closed = closed
	}
}

func isClosed(err error) bool {
	closed := (*closedError)(nil)
	return errors.As(err, &closed)
}
