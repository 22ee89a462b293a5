package addon

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// planHealth derives the condition Available from the lease (docs/reference/registration.md, "Health of an add-on").
// While the cluster is Unknown, the hub writes the condition.
func (p *plan) planHealth(f facts) {
	if !healthFromLease(f) {
		p.wake = f.nextInspection
		return
	}
	if p.place.problem != "" {
		p.planUnknownPlace(f)
		return
	}
	p.watch = []target{p.place.lease(f.name)}
	if !f.lease.known {
		p.planForbiddenLease(f)
		return
	}
	verdict := lease.Judge(leaseOf(f.lease), f.now, f.grace)
	if verdict.State == lease.Fresh {
		p.wake = verdict.ExpiresAt
	}
	if f.clusterUnknown {
		return
	}
	if until, waits := awaitsMode(f, verdict); waits {
		p.wake = until
		return
	}
	p.available = health(f.name, p.place, verdict)
	if verdict.State == lease.Fresh {
		return
	}
	if off, ok := clockOff(f, verdict); ok {
		p.available.Message = fmt.Sprintf("%s add-on is not available. Its lease %s/%s is being renewed, but with times "+
			"that lie %s in the past, and after %s a lease counts as not renewed: the clocks of the add-on agent and of the "+
			"agent that reads the lease differ by that much, set them right.",
			f.name, p.place.namespace, f.name, off, f.grace)
		return
	}
	p.explain = true
	p.wake = reconcile.Earliest(p.wake, f.nextInspection)
}

// planUnknownPlace reports that the namespace of the lease is not valid.
func (p *plan) planUnknownPlace(f facts) {
	if f.clusterUnknown {
		return
	}
	p.available = health(f.name, p.place, lease.Judge(nil, f.now, f.grace))
	p.available.Message = fmt.Sprintf("The status of %s add-on is unknown. There is no lease to be found: %s.",
		f.name, p.place.problem)
}

// planForbiddenLease reports that the agent may not watch the lease. Any other reason for which a lease is not known
// passes by itself.
func (p *plan) planForbiddenLease(f facts) {
	if f.clusterUnknown || f.lease.refused == nil {
		return
	}
	missing := lease.Judge(nil, f.now, f.grace)
	if until, waits := awaitsMode(f, missing); waits {
		p.wake = until
		return
	}
	p.available = health(f.name, p.place, missing)
	p.available.Message = fmt.Sprintf("The status of %s add-on is unknown. The klusterlet may not watch its lease %s/%s, "+
		"give it the right to do so: %s.", f.name, p.place.namespace, f.name, f.lease.refused)
}

// modeGrace is how long a new add-on without a lease may have no health mode. The hub usually sets it within a second,
// and most add-ons then have no lease at all.
const modeGrace = 10 * time.Second

// awaitsMode returns until when nothing is reported about a missing lease, because the hub has not yet decided whether
// there is to be one. A clock that is behind that of the hub cuts the wait short.
func awaitsMode(f facts, v lease.Verdict) (time.Time, bool) {
	age := f.now.Sub(f.addon.CreationTimestamp.Time)
	if v.State != lease.Missing || f.addon.Status.HealthCheck.Mode != "" || age < 0 || age >= modeGrace {
		return time.Time{}, false
	}
	return f.addon.CreationTimestamp.Add(modeGrace), true
}

// healthFromLease reports whether the health of the add-on is read from its lease.
func healthFromLease(f facts) bool {
	return f.addon != nil && f.addon.Status.HealthCheck.Mode != addonv1beta1.HealthCheckModeCustomized
}

// inspectionNeeded reports whether to look for the cause on the cluster: only while the add-on is unhealthy, and not
// while it is being deleted.
func inspectionNeeded(f facts) bool {
	if !healthFromLease(f) || !f.lease.known || f.clusterUnknown || !f.addon.DeletionTimestamp.IsZero() {
		return false
	}
	verdict := lease.Judge(leaseOf(f.lease), f.now, f.grace)
	_, off := clockOff(f, verdict)
	_, waits := awaitsMode(f, verdict)
	return verdict.State != lease.Fresh && !off && !waits
}

// health returns the condition Available for a verdict on the lease. OCM fixes the reasons and the beginnings
// of the messages; the rest explains the cause.
func health(addon string, p place, v lease.Verdict) *metav1.Condition {
	c := &metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionAvailable}
	switch v.State {
	case lease.Fresh:
		c.Status, c.Reason = metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated"
		c.Message = addon + " add-on is available."
	case lease.Stale:
		c.Status, c.Reason = metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped"
		c.Message = fmt.Sprintf("%s add-on is not available. Its %s.", addon, v.Message)
	case lease.Missing:
		c.Status, c.Reason = metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound"
		c.Message = fmt.Sprintf("The status of %s add-on is unknown. ", addon)
		if p.hosting != "" {
			c.Message += fmt.Sprintf("No lease found on hosting cluster %q; "+
				"verify it matches the cluster where this managed cluster's klusterlet actually runs. There is no lease %s/%s.",
				p.hosting, p.namespace, addon)
			break
		}
		c.Message += fmt.Sprintf("There is no lease %s/%s: no agent of the add-on has renewed it yet.", p.namespace, addon)
	}
	return c
}

// clockOff returns the time by which the clock of the add-on agent is behind ours, if that is why its lease is stale:
// the lease is renewed regularly, but with times in the past. The result is rounded, so that it does not change with
// each renewal.
func clockOff(f facts, v lease.Verdict) (time.Duration, bool) {
	s := f.lease.skew
	if v.State != lease.Stale || s == nil || s.behind < f.grace || !f.now.Before(s.seen.Add(f.grace)) {
		return 0, false
	}
	if s.behind < 10*time.Minute {
		return s.behind.Round(10 * time.Second), true
	}
	return s.behind.Round(time.Minute), true
}

// measure compares two renewals in a row. If the same time passed between them by both clocks, their difference is
// known; otherwise an event was late, and it returns nil.
func measure(before, after renewal) *skew {
	ours, theirs := after.seen.Sub(before.seen), after.carried.Sub(before.carried)
	if ours <= 0 || theirs <= 0 || (ours-theirs).Abs() > max(ours, theirs)/2+time.Second {
		return nil
	}
	return &skew{seen: after.seen, behind: after.seen.Sub(after.carried)}
}
