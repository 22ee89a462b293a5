package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// facts are the inputs of the decision of a pass.
type facts struct {
	// now is the instant of the pass.
	now time.Time
	// cluster is the ManagedCluster, a copy; nil when there is none.
	cluster *clusterv1.ManagedCluster
	// gone reports that the hub itself said that there is no ManagedCluster.
	gone bool
	// absent tells a person why there is no ManagedCluster to report to; empty when there is one.
	absent string
	// health is the result of the probes of the spoke; it is only observed once the cluster is accepted.
	health health
	// wake is the time of the next pass if no event comes first: the next probe of the spoke, the next attempt to read its
	// nodes, or the end of the period; zero when there is none.
	wake time.Time
	// lastHeartbeat is the time at which the hub stored the last heartbeat, by the clock of the hub if it is known; zero
	// when there was none.
	lastHeartbeat time.Time
	// resources are the sums over the nodes; nil when the nodes could not be read. summed is when this process last wrote
	// other sums than before; zero when it did not.
	resources *resources
	summed    time.Time
	// claims are the claims to report; nil when they could not be read, empty when there are none.
	claims []clusterv1.ManagedClusterClaim
	// hosting is the value that the claim on the cluster of the agent should have, and hosts what it has, empty for no
	// claim; both are nil while they are not known, or nothing is to be done about it.
	hosting, hosts *string
	// namespaces are the Namespaces that have the label of the hub; none while they are unknown.
	namespaces []namespace
}

// accepted reports whether the hub has accepted the cluster and so granted the agent its permissions.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}

// availability is the state of the API server of the spoke to report.
type availability int

const (
	// keep leaves the condition as it is: the state is unknown, has failed too shortly, or the hub still waits for a
	// heartbeat.
	keep availability = iota
	available
	unavailable
)

// plan is the result of the decision of a pass.
type plan struct {
	// heartbeat is the time between two heartbeats, zero for none.
	heartbeat time.Duration
	// awaitHeartbeat requests a pass after the next heartbeat.
	awaitHeartbeat bool
	// publish is set when the status is written.
	publish bool
	// availability is the state that the condition reports.
	availability availability
	// refresh is set when version, resources, claims and managed namespaces are written, too.
	refresh bool
	// withhold is set when sums over the nodes stay as they are, because others were written a moment ago.
	withhold bool
	// hosting is the new value of the claim on the cluster of the agent, empty where it goes; nil leaves it as it is.
	hosting *string
	// markings are the namespaces whose label changes.
	markings []marking
	// wake is the time of the next pass; zero when only an event causes one.
	wake time.Time
}
