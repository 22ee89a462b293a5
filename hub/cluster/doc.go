// Package cluster is the hub's side of one ManagedCluster: it lets a cluster in, notices when it falls silent, and
// cleans up when it goes. One pass answers these questions, in this order:
//
//   - Is the name usable? The group of cluster "managed-clusters" would be that of all clusters, and clusters "work"
//     and "registration" would own the roles that all clusters share; such names are refused.
//   - Is the cluster going? Then its add-ons are deleted first, its ManifestWorks next, its certificate requests and
//     its access last. Condition Deleting says what is still there. Caches say when to look; before access is taken
//     away the server is asked.
//   - Is it gone, though nobody waited for its finalizer? Then the same is done for whatever has access left, which
//     proves that it was accepted once. A namespace that was only prepared for a cluster is never touched.
//   - Is it accepted? Then it has a namespace, the access that registration.md 1.9 lists, and a lease.
//   - Was it denied? Then its access shrinks to reading itself; access to ManifestWorks lingers until none is left.
//   - Was nobody asked yet? Then it waits for a person, unless a certificate request for exactly this cluster by a user
//     whom the hub trusts (Reconciler.Trust) vouches for it. It is accepted so once; a later denial stands, because
//     every accepted cluster is annotated before its agent gets any access, and the agent may not change that
//     (remember.go).
//   - Is it silent? At exactly the instant at which its lease expires, Available becomes Unknown, and then that of its
//     add-ons. A stale lease in the cache is read again from the server first: a slow cache is no dead cluster.
//   - Is its clock right? The renewTime that the agent wrote is compared with the instant at which the API server
//     stored it, which the server keeps beside it; so it does not matter when somebody looks, and silence is no wrong
//     clock.
//
// Every cluster with a usable name has the finalizer names.FinalizerCluster from the start, accepted or not. Every
// cluster is in a cluster set, has the taint that follows its health, and taints that say since when. Finalizer,
// annotations, labels, taints and acceptance are one guarded write.
//
// Nothing is polled: namespace, access, lease, add-ons, ManifestWorks and certificate requests are watched, and expiry
// is a wake instant. A renewed lease causes no pass at all, unless it turns the verdict on the clock.
//
// The request without a name stands for the two ClusterRoles that all clusters share.
package cluster
