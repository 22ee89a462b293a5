package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/lease"
)

// unavailableAfter is how long probes must fail before the cluster is called unavailable.
const unavailableAfter = 20 * time.Second

// availability is what is to be said about the API server of the spoke.
type availability int

const (
	// keep leaves the condition as it is: not known yet, failing too shortly, or the hub's word still stands.
	keep availability = iota
	available
	unavailable
)

// plan is what a pass is to do.
type plan struct {
	// heartbeat is the time between two heartbeats, zero for none.
	heartbeat time.Duration
	// awaitBeat asks for a pass after the next heartbeat.
	awaitBeat bool
	// publish says whether the status is written at all.
	publish bool
	// availability is what goes into the condition.
	availability availability
	// refresh says whether version, resources, claims and managed namespaces are written too.
	refresh bool
	// markings are the namespaces whose label is to be changed.
	markings []marking
	// wake is when to look again, zero when only an event asks for it.
	wake time.Time
}

// decide turns facts into a plan.
func decide(f facts) plan {
	if f.cluster == nil || !f.cluster.DeletionTimestamp.IsZero() {
		// The hub lets go of its namespaces; whether the cluster goes on beating until it is gone is another matter.
		p := plan{markings: markings(nil, f.namespaces)}
		if f.cluster == nil || !accepted(f.cluster) {
			return p
		}
		return steady(f, p)
	}
	if !accepted(f.cluster) {
		return plan{}
	}
	var p plan
	if f.health.well() {
		p.markings = markings(f.cluster.Status.ManagedNamespaces, f.namespaces)
	}
	return steady(f, p)
}

// steady adds to a plan what an accepted cluster does: heartbeat and status.
func steady(f facts, p plan) plan {
	p.heartbeat, p.wake = lease.ClusterDuration(f.cluster.Spec.LeaseDurationSeconds), f.nextLook
	if meta.IsStatusConditionFalse(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
		// The hub judges our heartbeats by a clock that disagrees with ours: every word about being available would be
		// taken back by the other side. Heartbeats go on, so that the hub notices when the clocks agree again.
		return p
	}
	p.publish = true
	switch {
	case f.health.probedAt.IsZero():
	case f.health.well():
		p.refresh = true
		if p.awaitBeat = silenced(f); !p.awaitBeat {
			p.availability = available
		}
	case f.now.Sub(f.health.failingSince) >= unavailableAfter:
		p.availability = unavailable
	}
	return p
}

// silenced reports whether the hub has given the cluster up and has not got a heartbeat since. Both instants are by the
// clock of the hub, which counts in whole seconds.
func silenced(f facts) bool {
	have := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return have != nil && have.Status == metav1.ConditionUnknown && have.Reason == reasonLeaseStopped &&
		f.lastBeat.Before(have.LastTransitionTime.Time)
}
