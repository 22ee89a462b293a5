// Package cluster tells the hub about the cluster that the agent runs for: it is the agent's writer of the status of
// its ManagedCluster, it keeps the heartbeat of the cluster, and it marks the namespaces that the hub manages there.
//
// The story of one pass: the ManagedCluster is read from a cache that holds nothing else. Until the hub has accepted
// the cluster nothing is written and no heartbeat is sent. From then on the heartbeat runs with the period that the
// hub asks for, and one status patch at most carries the conditions ManagedClusterJoined and
// ManagedClusterConditionAvailable, the Kubernetes version, capacity and allocatable of the nodes, the claims, and how
// each managed namespace is. Where that patch turned Available, an Event on the hub tells it once more.
//
// The pass waits for nothing but the ManagedCluster. What the spoke has not answered yet is unknown and stays as it is
// written, so an agent whose API server does not answer at its start still says just that, and still beats.
//
// # How the agent knows that its API server is well
//
// The contract says GET /livez, and that 20 seconds of failure make a cluster unavailable. It does not say when to
// look, and a look every few seconds at rest is what Spokelet does not do. The agent talks to its API server all the
// time anyway: it holds watches, and it renews its leader election lease. Traffic watches that talk. A request that
// fails, an answer of 500 and above, or a connection that had to be made anew is a disturbance, and a disturbance
// leads to a probe. While probes fail they are repeated every five seconds; the first that succeeds ends it. The
// version is read along with a successful probe, because no API server changes its version without cutting its
// connections. The period that a Klusterlet sets for such looks bounds the time between two passes, which look at
// caches and send nothing.
//
// # Who may call an Unknown cluster available again
//
// The hub sets Available to Unknown when heartbeats stay away. The agent takes that back only with a heartbeat that
// was stored after the hub gave up. So an agent whose writes to the status get through while its heartbeats do not
// never fights with the hub. The same holds while the hub says that the clocks disagree: heartbeats go on, words about
// being available wait.
//
// # Claims whose kind comes and goes
//
// ClusterClaims and ClusterProperties are kinds that a cluster may get, or lose, at any time. To ask for a kind that is
// not there would be a poll, and to look at start alone would need a restart. So the agent watches the definition of
// the kind, that one CustomResourceDefinition by its name, and the kind itself as long as the definition serves it. A
// Klusterlet of OCM may not grant that watch; then the kind is asked for directly, every few minutes while it is
// not there. ClusterProperties are read in the versions v1alpha1 and v1beta1, whichever their definition serves, and
// their definition is not ours to ship.
//
// A value that the API of the hub does not take (ClusterProperties know no limit, claims on the hub do) is left out and
// logged, because the API would refuse the whole status for it.
//
// # Managed namespaces
//
// For each namespace that the hub lists in the status of the ManagedCluster, a Namespace of that name is made if it is
// missing and labelled as managed by this hub. One that is no longer listed, or whose cluster is being deleted or gone,
// gets the value false; none is ever deleted. Only the namespaces with the label are watched, so taking the label away
// is an event as well, and repaired.
package cluster
