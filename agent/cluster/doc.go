// Package cluster tells the hub about the cluster that the agent runs for: it is the agent's writer of the status of
// its ManagedCluster, and it keeps the heartbeat of the cluster.
//
// The story of one pass: the ManagedCluster is read from a cache that holds nothing else. Until the hub has accepted
// the cluster nothing is written and no heartbeat is sent. From then on the heartbeat runs with the period that the
// hub asks for, and one status patch at most carries the conditions ManagedClusterJoined and
// ManagedClusterConditionAvailable, the Kubernetes version, capacity and allocatable of the nodes, and the claims.
//
// # How the agent knows that its API server is well
//
// The contract says GET /livez, and that 20 seconds of failure make a cluster unavailable. It does not say when to
// look, and a look every few seconds at rest is what Spokelet does not do. The agent talks to its API server all the
// time anyway: it holds watches, and it renews its leader election lease. Traffic watches that talk. A request that
// fails, an answer of 500 and above, or a connection that had to be made anew is a disturbance, and a disturbance
// leads to a probe. While probes fail they are repeated every five seconds; the first that succeeds ends it. The
// version is read along with a successful probe, because no API server changes its version without cutting its
// connections.
//
// # Who may call an Unknown cluster available again
//
// The hub sets Available to Unknown when heartbeats stay away. The agent takes that back only with a heartbeat that
// was stored after the hub gave up. So an agent whose writes to the status get through while its heartbeats do not
// never fights with the hub.
package cluster
