// Package placement turns Placements into PlacementDecisions, for hubs without another placement controller. It
// implements the part of the API that installing and rolling out add-ons needs:
//
//   - predicates over labels, claims and CEL expressions, taints and tolerations, numberOfClusters. Selected clusters
//     stay selected as long as they are eligible; new ones are selected in the order of their names.
//   - ManagedClusterSetBindings: a Placement selects from the cluster sets that are bound to its namespace, narrowed by
//     spec.clusterSets. The sets default and global exist even without an object. Clusters that an earlier
//     version selected without bindings stay selected until an administrator decides (docs/adr/0018-placement.md).
//   - decision groups (docs/adr/0018-placement.md).
//   - the rest (prioritizers, spread, sorting by score) is refused with the name of the field in condition
//     PlacementMisconfigured, and existing decisions stay, but for clusters that leave the sets (decide.go).
//
// Decisions are slices of at most 100 clusters, one PlacementDecision each. A cluster stays in its slice as long as it
// belongs to the decision group of the slice: new clusters take the places of removed ones. One that must move is in
// its new slice before it leaves the old one. So a reader that sees the slices change one by one never misses a cluster
// that stays.
//
// The reconciler remembers the parsed selectors of each Placement. A change of a cluster starts a pass only for
// Placements whose selectors judge the cluster differently after it.
//
// A Placement with annotation cluster.open-cluster-management.io/experimental-scheduling-disable=true is left
// to others. Until they write, its decisions are like those of one that is misconfigured.
package placement
