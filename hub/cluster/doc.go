// Package cluster reconciles ManagedClusters on the hub: it accepts a cluster, detects that its agent is silent, and
// cleans up after it. One pass answers these questions, in this order:
//
//   - Is the name usable? The group of a cluster "managed-clusters" would be that of all clusters, and clusters "work"
//     and "registration" would own the roles that all clusters share; such names are refused.
//   - Is the cluster being deleted? Then its add-ons are deleted first, then its ManifestWorks, then its certificate
//     requests and its access. Condition Deleting lists what is left. Before works and access are deleted, the API
//     server is asked what is left, because caches may be behind.
//   - Is it gone without clean-up, because a user removed its finalizers? Then the same is done, if any access is
//     left, which proves that the cluster was accepted once. A namespace that was only prepared for a cluster stays.
//   - Is the namespace of its name that of others? It is, if it was there before and has no label of the cluster. Then
//     the cluster is not accepted automatically, and gets no access if a person accepts it; condition NamespaceReady
//     says how an administrator consents.
//   - Is it accepted? Then it has a namespace, the access that registration 1.9 of OCM lists, and a lease. Before any
//     access is created, the API server is asked whether the cluster exists and is accepted, because the cache of a
//     hub that was restored may be ahead.
//   - Was it denied? Then its access is reduced to reading its own ManagedCluster, and it keeps access to ManifestWorks
//     until none is left. Its namespace is annotated, so that a ManagedCluster of this name that is created after the
//     denied one was deleted is denied, too, until a person accepts it (decide_unaccepted.go).
//   - Was nothing decided yet? Then it waits for a person, unless a certificate request for exactly this cluster comes
//     from a user whom the hub trusts (Reconciler.Trust). That accepts the cluster once; a later denial stands, because
//     every accepted cluster is annotated before its agent gets any access, and the agent cannot change the annotation
//     (decide_unaccepted.go).
//   - Is it silent? At the instant at which its lease expires, Available becomes Unknown, and then that of its add-ons.
//     A stale lease in the cache is first read again from the API server, because a slow cache is not a dead cluster.
//   - Is its clock right? The renewTime that the agent wrote is compared with the time at which the API server stored
//     it, so the result does not depend on when it is computed, and a silent agent has no wrong clock.
//   - Does its agent write or request far more often than a healthy one? Package meter counts that, from the events of
//     the watches that are there anyway, and condition AgentQuiet says it.
//
// Every cluster with a usable name has the finalizer names.FinalizerCluster from the start, accepted or not. Every
// cluster is in a cluster set, has the taint that follows its health, and taints with timeAdded. Finalizer,
// annotations, labels, taints and acceptance are one guarded write.
//
// Caches may be behind, and one more than another. What gives something, takes something or accepts a cluster is
// therefore confirmed: what it follows from is read from the API server, and where that leads to another plan, nothing
// is done until the cache has it, too (decide_confirm.go). A cluster that stays as it is causes no such read.
//
// Nothing is polled: namespace, access, lease, add-ons, ManifestWorks and certificate requests are watched, and expiry
// is a wake instant. A renewed lease causes no pass, unless it changes the clock condition.
//
// The request without a name is for the two ClusterRoles that all clusters share.
package cluster
