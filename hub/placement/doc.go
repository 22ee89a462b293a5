// Package placement turns Placements into PlacementDecisions, for hubs that have no other placement controller. It
// knows the part of the API that installing add-ons needs:
//
//   - predicates over labels and claims, taints and tolerations, numberOfClusters. Clusters that are selected stay
//     selected while they are eligible; new ones are taken in the order of their names.
//   - ManagedClusterSetBindings: a Placement selects from the cluster sets that are bound to its namespace, narrowed by
//     spec.clusterSets. Sets default and global are there also without an object. Clusters that an earlier version
//     selected without asking for bindings stay selected until somebody decides (docs/adr/0029-set-bindings.md).
//   - the rest (celSelector, prioritizers, decision groups, spread, sorting by score) is refused by name
//     in condition PlacementMisconfigured, and the decisions that exist are left as they are.
//
// Decisions are pages of at most 100. A cluster never moves from one page to another: those that leave make room for
// those that come. So at no instant does a reader that sees the pages change one by one miss a cluster that stays.
//
// A Placement with annotation cluster.open-cluster-management.io/experimental-scheduling-disable=true is somebody
// else's.
package placement
