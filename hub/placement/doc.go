// Package placement turns Placements into PlacementDecisions, for hubs without another placement controller. It
// implements the part of the API that installing add-ons needs:
//
//   - predicates over labels and claims, taints and tolerations, numberOfClusters. Selected clusters stay selected
//     as long as they are eligible; new ones are selected in the order of their names.
//   - ManagedClusterSetBindings: a Placement selects from the cluster sets that are bound to its namespace, narrowed by
//     spec.clusterSets. The sets default and global exist even without an object. Clusters that an earlier
//     version selected without bindings stay selected until an administrator decides (docs/adr/0029-set-bindings.md).
//   - the rest (celSelector, prioritizers, decision groups, spread, sorting by score) is refused
//     with the name of the field in condition PlacementMisconfigured, and existing decisions stay unchanged.
//
// Decisions are slices of at most 100 clusters, one PlacementDecision each. A cluster never moves from one slice to
// another: new clusters take the places of removed ones. So a reader that sees the slices change one by one never
// misses a cluster that stays.
//
// A Placement with annotation cluster.open-cluster-management.io/experimental-scheduling-disable=true is left
// to others.
package placement
