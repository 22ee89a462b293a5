// Package cluster is the hub's side of one ManagedCluster: it lets a cluster in, notices when it falls silent, and
// cleans up when it goes. One pass answers five questions, in this order:
//
//   - Is the name usable? The group of cluster "managed-clusters" would be that of all clusters, and clusters "work"
//     and "registration" would own the roles that all clusters share; such names are refused.
//   - Is the cluster going? Then its add-ons are deleted first, its ManifestWorks next, its access last. Condition
//     Deleting says what is still there. Caches say when to look; before access is taken away the server is asked.
//   - Is it accepted? Then it has a finalizer, a namespace, the access that registration.md 1.9 lists, and a lease.
//   - Was it denied? Then its access shrinks to reading itself; access to ManifestWorks lingers until none is left.
//   - Is it silent? At exactly the instant at which its lease expires, Available becomes Unknown, and then that of its
//     add-ons. A stale lease in the cache is read again from the server first: a slow cache is no dead cluster.
//
// Nothing is polled: namespace, access, lease, add-ons and ManifestWorks are watched, and expiry is a wake instant. A
// renewed lease causes no pass at all.
//
// The request without a name stands for the two ClusterRoles that all clusters share.
package cluster
