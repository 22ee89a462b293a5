// Package lease is the heartbeat protocol of Spokelet, both halves of it.
//
// Who is alive renews a Lease; who wants to know compares its renewTime with a clock. There are two such leases:
//
//   - the heartbeat of a cluster: the Lease names.LeaseCluster in the cluster's namespace on the hub. The hub creates
//     it, the agent renews it once the cluster is accepted, and the hub calls the cluster Unknown when it has not been
//     renewed for ClusterGrace.
//   - the heartbeat of an add-on: a Lease named like the add-on in the add-on's namespace on its own cluster. The
//     add-on agent creates and renews it, and our agent turns it into the condition Available of the
//     ManagedClusterAddOn, with AddonGrace.
//
// Judge is the reading half and is pure: a Lease, an instant and a grace in, a Verdict out. A Lease that nobody ever
// renewed is stale, never a crash, because whoever may write a Lease may also leave out its renewTime.
//
// Renewer is the writing half, for our agent and for agents of add-ons alike. A beat costs one request: the last answer
// of the server is kept and written back with a new renewTime. A beat that fails is repeated within the period, so a
// short disturbance never costs the cluster or the add-on its Available condition.
//
// The package depends on API types alone, so an add-on agent that imports it grows by nothing else.
package lease
