package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// unavailableAfter is the time for which probes must fail before the cluster is reported unavailable.
const unavailableAfter = 20 * time.Second

// sumsPause is the least time between two writes of sums over the nodes, so that nodes which come and go all the time
// do not make the hub store a status for each change. The first change after that time is written at once.
const sumsPause = 5 * time.Second

// decide turns facts into a plan.
func decide(f facts) plan {
	if f.cluster == nil && !f.gone {
		return plan{wake: f.wake} // a cache may have lost it
	}
	if f.cluster == nil || !f.cluster.DeletionTimestamp.IsZero() {
		// The hub no longer manages its namespaces. An accepted cluster sends heartbeats until it is gone.
		p := plan{markings: markings(nil, f.namespaces)}
		if f.cluster == nil || !accepted(f.cluster) {
			return p
		}
		return planAccepted(f, p)
	}
	if !accepted(f.cluster) {
		return plan{}
	}
	var p plan
	if f.health.healthy() {
		p.markings = markings(f.cluster.Status.ManagedNamespaces, f.namespaces)
	}
	return planAccepted(f, p)
}

// planAccepted adds the heartbeat and the status of an accepted cluster to a plan.
func planAccepted(f facts, p plan) plan {
	p.heartbeat, p.wake = lease.ClusterDuration(f.cluster.Spec.LeaseDurationSeconds), f.wake
	if meta.IsStatusConditionFalse(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
		// The hub judges our heartbeats by a clock that disagrees with ours, so the hub and the agent would overwrite the
		// condition in turns. Heartbeats continue, so that the hub notices when the clocks agree again.
		return p
	}
	p.publish = true
	switch {
	case f.health.probedAt.IsZero():
	case f.health.healthy():
		p.refresh = true
		if f.hosting != nil && f.hosts != nil && *f.hosting != *f.hosts {
			p.hosting = f.hosting
		}
		if next := f.summed.Add(sumsPause); f.now.Before(next) && sumsChange(f) {
			p.withhold, p.wake = true, reconcile.Earliest(p.wake, next)
		}
		p.availability = available
	case f.now.Sub(f.health.failingSince) >= unavailableAfter:
		p.availability = unavailable
	}
	if p.availability != keep && heartbeatPending(f) {
		p.availability, p.awaitHeartbeat = keep, true // the hub would take it back at once
	}
	return p
}

// heartbeatPending reports whether the hub has set Available to Unknown and stored no heartbeat since. Both times are
// by the clock of the hub, in whole seconds.
func heartbeatPending(f facts) bool {
	have := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return have != nil && have.Status == metav1.ConditionUnknown && have.Reason == reasonLeaseStopped &&
		f.lastHeartbeat.Before(have.LastTransitionTime.Time)
}
