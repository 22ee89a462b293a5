// Package lease is the heartbeat protocol of Spokelet, both halves of it.
//
// A component renews a Lease while it is alive; a reader compares its renewTime with a clock. There are two such
// leases:
//
//   - the heartbeat of a cluster: the Lease names.LeaseCluster in the cluster's namespace on the hub. The hub creates
//     it, the agent renews it once the cluster is accepted, and the hub sets the cluster to Unknown when it was not
//     renewed for ClusterGrace.
//   - the heartbeat of an add-on: a Lease named like the add-on in the add-on's namespace on its own cluster. The
//     add-on agent creates and renews it, and our agent turns it into the condition Available of the
//     ManagedClusterAddOn, with AddonGrace.
//
// Judge is the reading half and is pure: it maps a Lease, a time and a grace period to a Verdict. A Lease that was
// never renewed is stale: a writer of a Lease may leave out its renewTime.
//
// Renewer is the writing half, for our agent and for agents of add-ons. A renewal costs one request: the last answer of
// the server is kept and written back with a new renewTime. A renewal that fails is repeated within the period, so a
// short outage does not change the Available condition of the cluster or the add-on.
//
// The package imports API types only, so that it adds little to the size of an add-on agent.
package lease
