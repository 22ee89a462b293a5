// Package cluster reports the state of the cluster to the hub: it is the agent's writer of the status of its
// ManagedCluster, it sends the heartbeat of the cluster, and it labels the namespaces that the hub manages there.
//
// One pass: the ManagedCluster is read from a cache that holds nothing else. Until the hub has accepted the cluster
// nothing is written and no heartbeat is sent. From then on the heartbeat runs with the period that the hub sets, and
// at most one status patch carries the conditions ManagedClusterJoined and ManagedClusterConditionAvailable, the
// Kubernetes version, capacity and allocatable of the nodes, the claims, and the condition of each managed namespace.
// When that patch changed Available, an Event on the hub reports the change.
//
// The controller waits for the ManagedCluster only. Fields of the status for which the spoke has not answered yet stay
// unchanged, so an agent whose API server does not answer at its start still reports that and still sends heartbeats.
//
// # How the agent knows that its API server is healthy
//
// OCM says GET /livez, and that 20 seconds of failure make a cluster unavailable. It leaves open when to
// probe, and Spokelet does not poll. The agent sends requests to its API server all the time anyway: it holds watches,
// and it renews its leader election lease. FailureDetector observes these requests. A request that fails, an answer of
// 500 or above, or a new connection leads to a probe. While probes fail they are repeated every five seconds, until one
// succeeds. The version is read along with a successful probe, because no API server changes its version without
// closing its connections. The period that a Klusterlet sets for status updates bounds the time between two passes,
// which read caches and send nothing.
//
// # Who may report an Unknown cluster as available again
//
// The hub sets Available to Unknown when heartbeats stop. The agent replaces that only after a heartbeat that was
// stored after the hub did so. An agent whose status updates succeed while its heartbeats fail therefore never fights
// with the hub. The same holds while the hub reports that the clocks disagree: heartbeats go on, Available is left
// alone.
//
// # Claims whose kind comes and goes
//
// ClusterClaims and ClusterProperties are kinds that a cluster may get, or lose, at any time. Listing a kind that may
// not exist would be a poll, and checking only at start would need a restart. So the agent watches the
// CustomResourceDefinition of the kind by its name, and the kind itself as long as the definition serves it. A
// Klusterlet of OCM may not grant that watch; then the kind is listed directly, every few minutes while it does not
// exist. ClusterProperties are read in the versions v1alpha1 and v1beta1, whichever their definition serves, and their
// definition is not shipped with Spokelet.
//
// A value that the API of the hub does not accept is left out and logged, because the API would reject the whole status
// with it. ClusterProperties have no limit, claims on the hub do.
//
// # Managed namespaces
//
// For each namespace that the hub lists in the status of the ManagedCluster, a Namespace of that name is created if it
// is missing and labelled as managed by this hub. A Namespace that is no longer listed, or whose cluster is being
// deleted or gone, gets the value false; none is ever deleted. Only the namespaces with the label are watched. Removing
// the label is an event as well, and is repaired.
package cluster
