package install

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
)

// backPeriod is how long a cluster must be available again before decisions count that were made while it was not.
const backPeriod = time.Minute

// latePeriod is how long a cluster must be available again before a page counts that another scheduler wrote within
// backPeriod of that: it may have begun to decide before, and have ended since.
const latePeriod = 10 * time.Minute

// update returns the absence with what the cluster looks like now.
func (a absence) update(cluster *clusterv1.ManagedCluster, now time.Time) absence {
	switch {
	case !well(cluster):
		a.away, a.dropped, a.back = true, false, time.Time{}
	case a.away && a.back.IsZero():
		a.back = now
	}
	switch {
	case isDenied(cluster):
		a.denied, a.accepted = true, time.Time{}
	case a.denied && a.accepted.IsZero():
		a.accepted = now
	}
	return a
}

// isDenied reports whether the hub does not accept a cluster that exists.
func isDenied(c *clusterv1.ManagedCluster) bool {
	return c != nil && c.DeletionTimestamp.IsZero() && !c.Spec.HubAcceptsClient
}

// admitted returns why an unselected cluster may be unselected only because the hub does not accept it, or did not
// until now, and the instant to check again, zero when an event starts the next pass.
func admitted(c candidate, now time.Time) (time.Time, error) {
	if isDenied(c.managed) {
		return time.Time{}, errors.New("the hub does not accept their clusters; add-ons there stay until the hub accepts " +
			"the cluster again, or go with its ManagedCluster")
	}
	if c.managed == nil || !c.managed.DeletionTimestamp.IsZero() {
		return time.Time{}, nil
	}
	if until := acceptedLately(c).Add(backPeriod); now.Before(until) {
		return until, fmt.Errorf("cluster %s was accepted a moment ago", c.cluster)
	}
	return time.Time{}, nil
}

// acceptedLately returns when the hub accepted the cluster of an add-on again, as this process saw it, or as the
// condition of the cluster says: the process may be younger. It is zero when neither is known. An add-on that came
// after the acceptance was not there during a denial. A cluster that was unselected before is so for another reason:
// its agent may write the time of the condition, and has a clock of its own.
func acceptedLately(c candidate) time.Time {
	told := meta.FindStatusCondition(c.managed.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	if c.absence.denied || told == nil || told.Status != metav1.ConditionTrue {
		return c.absence.accepted
	}
	since, created := told.LastTransitionTime.Time, c.addon.GetCreationTimestamp()
	switch {
	case !created.Add(backPeriod).Before(since): // It may be a moment older than the condition of a first acceptance.
		return time.Time{}
	case since.After(c.absence.noted):
		return c.absence.noted
	}
	return since
}

// reachable returns why an unselected cluster may be unselected only because it is unavailable, and the instant to
// check again, zero when an event starts the next pass.
//
// A cluster that is not available gets a taint, for which Placements drop it unless they tolerate it. It is not known
// whether they would select it otherwise, so its add-ons stay. When it is available again, decisions that are older do
// not count against it: the placement controller may be late, or down. edited reports whether a person edited the
// placements, which counts as well. An add-on that is not older than the availability of its cluster was never there
// during an absence.
func reachable(c candidate, edited bool, now time.Time) (time.Time, error) {
	a, placements := c.absence, c.concerned
	if c.managed == nil || !c.managed.DeletionTimestamp.IsZero() {
		return time.Time{}, nil
	}
	if len(placements) > 0 && !slices.ContainsFunc(placements, dropsUnavailable) {
		return time.Time{}, nil
	}
	if taint := healthTaint(c.managed); taint != nil {
		return time.Time{}, minds(placements, *taint, now)
	}
	if !available(c.managed) {
		return time.Time{}, nil
	}
	var written time.Time
	own := len(placements) > 0
	for _, d := range placements {
		own = own && d.Own
		if d.Written.After(written) {
			written = d.Written
		}
	}
	since := a.available
	if late := a.noted.Add(latePeriod); !a.noted.IsZero() && since.After(late) && a.back.Before(late) {
		since = late // This process saw no absence since then, and an agent may write the time.
	}
	// What a person edits, our placement decides in a moment; that it was edited says nothing of a cluster that came back
	// since.
	old := written.Before(since) && len(placements) > 0 && (own || !edited)
	if a.back.After(since) {
		since = a.back
	}
	if old && own && a.noted.After(since) {
		since = a.noted
	}
	created := c.addon.GetCreationTimestamp()
	early := !own && len(placements) > 0 && created.Add(backPeriod).Before(since) && written.Before(since.Add(backPeriod))
	if until := since.Add(latePeriod); early && !old && now.Before(until) {
		return until, fmt.Errorf("cluster %s was unavailable, and no placement was decided a minute after that, or later",
			c.cluster)
	}
	if a.dropped {
		return time.Time{}, nil
	}
	if until := since.Add(backPeriod); now.Before(until) && (old || a.away) {
		return until, fmt.Errorf("cluster %s was unavailable a moment ago", c.cluster)
	}
	if old && !own {
		return time.Time{}, fmt.Errorf("no placement was decided since their clusters are available again; if the add-ons "+
			"should go, delete their ManagedClusterAddOns or edit a placement, such as %s", placements[0].Key)
	}
	return time.Time{}, nil
}

// minds returns why placements may have dropped a cluster for its taint. A cluster that is available again keeps it for
// a moment, in which it may be decided about.
func minds(placements []*fleet.Decisions, taint clusterv1.Taint, now time.Time) error {
	for _, d := range placements {
		why := ""
		switch {
		case d.Placement == nil:
		case isEarlier(d):
			why = fmt.Sprintf("placement %s was edited and not decided since", d.Key)
		case !d.Own && d.Written.Before(taint.TimeAdded.Time) &&
			!toleratesForGood(d.Placement.Spec.Tolerations, taint):
			// It may have dropped the cluster when an earlier taint was not tolerated any more.
			why = fmt.Sprintf("placement %s was not decided since, and tolerates taint %s for a while only", d.Key, taint.Key)
		case !tolerates(d.Placement.Spec.Tolerations, taint, now):
			why = fmt.Sprintf("placement %s does not tolerate taint %s", d.Key, taint.Key)
		}
		if why != "" {
			return fmt.Errorf("their clusters are not available, and %s; add-ons on a cluster that does not come back go with "+
				"its ManagedCluster", why)
		}
	}
	return nil
}

// isEarlier reports whether another scheduler decided before people edited the Placement: a toleration that it has now
// is not one that it had then. Both are times of the API server, and by the second.
func isEarlier(d *fleet.Decisions) bool {
	return !d.Own && d.Placement != nil && d.Written.Before(fleet.LastEdited(d.Placement))
}

// dropsUnavailable reports whether a Placement may have dropped a cluster because it is not available: it tolerates one
// of the taints for a while at most, or does so only now.
func dropsUnavailable(d *fleet.Decisions) bool {
	return d.Placement == nil || isEarlier(d) || slices.ContainsFunc(
		[]string{clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable},
		func(key string) bool {
			taint := clusterv1.Taint{Key: key, Effect: clusterv1.TaintEffectNoSelect}
			return !toleratesForGood(d.Placement.Spec.Tolerations, taint)
		})
}

// healthTaint returns the taint of a cluster that is not available; nil when it has none.
func healthTaint(c *clusterv1.ManagedCluster) *clusterv1.Taint {
	for i := range c.Spec.Taints {
		t := &c.Spec.Taints[i]
		if t.Effect == clusterv1.TaintEffectNoSelect &&
			(t.Key == clusterv1.ManagedClusterTaintUnreachable || t.Key == clusterv1.ManagedClusterTaintUnavailable) {
			return t
		}
	}
	return nil
}

// available reports whether a cluster is available, as far as it is known; a cluster that does not exist is.
func available(c *clusterv1.ManagedCluster) bool {
	if c == nil {
		return true
	}
	condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// well reports whether a cluster is available and has no taint that says otherwise, so that no Placement drops it.
func well(c *clusterv1.ManagedCluster) bool {
	return available(c) && (c == nil || healthTaint(c) == nil)
}

// availableSince returns since when a cluster is available, by the clock of the agent that reported it.
func availableSince(c *clusterv1.ManagedCluster) time.Time {
	condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if condition == nil {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}

// tolerates reports whether tolerations cover a taint now.
func tolerates(tolerations []clusterv1beta1.Toleration, taint clusterv1.Taint, now time.Time) bool {
	covered, end, until := fleet.Tolerated(tolerations, taint, taint.TimeAdded.Time)
	return covered && (!end || now.Before(until))
}

// toleratesForGood reports whether a toleration covers a taint that does not end.
func toleratesForGood(tolerations []clusterv1beta1.Toleration, taint clusterv1.Taint) bool {
	covered, end, _ := fleet.Tolerated(tolerations, taint, taint.TimeAdded.Time)
	return covered && !end
}

// droppedWhileAvailable reports whether a decision that was written at an instant is about a cluster that was available
// then, since another instant, and still is.
func droppedWhileAvailable(c *clusterv1.ManagedCluster, since, written time.Time) bool {
	return c != nil && well(c) && !written.Before(since)
}
