// Package install turns a ClusterManagementAddOn with install strategy Placements, and the decisions of its Placements,
// into ManagedClusterAddOns. There are two kinds of requests:
//
//   - one add-on on one cluster: it is installed where a Placement selects the cluster, gets its owner reference,
//     without which nothing is deployed (for strategy Manual, too), and the annotations of the cluster
//     (decide_annotations.go). A change of a decision costs as much on a hub of 3,000 clusters as on one of three, and
//     no cluster waits for another;
//   - one add-on, without a cluster: it is removed from clusters that no Placement selects. Handlers of events note
//     these clusters (memory.go), so that such a pass looks at what changed.
//
// An add-on that no placement selects is looked at only if the ClusterManagementAddOn exists, is not being deleted, and
// is managed according to its life cycle annotation, and if this reconciler created the ManagedClusterAddOn: label
// addon.spokelet.io/installed-by=placement. An add-on that a person created is never deleted here; the label hands it
// over. An add-on that another manager created for a placement gets the label while a placement selects its cluster
// (decide_annotations.go): its managedFields show that one writer created both the add-on and its owner reference.
//
// Then this table says what follows (docs/reference/hub.md, "Removal"). The first row that applies counts, and an empty
// field does not matter.
//
//	certain (package fleet)   | reachable (decide_reach.go) | edited | within the limit | what follows
//	                          | denied by the hub           |        |                  | kept, Event
//	                          | accepted again lately       |        |                  | wait a minute
//	no: missing, not decided, |                             |        |                  | kept, Event
//	edited, misconfigured     |                             |        |                  |
//	not quiet yet             |                             |        |                  | wait for the quiet period
//	yes                       | unavailable, not tolerated  |        |                  | kept, Event
//	yes                       | back later than decided     | no     |                  | wait a minute; then kept, or
//	                          |                             |        |                  | removed where we decide
//	yes                       | yes                         | yes    |                  | removed
//	yes                       | yes                         | no     | yes              | removed
//	yes                       | yes                         | no     | no               | held until confirmed
//
// A cluster that is being deleted or is gone counts as reachable, and not for the limit. Certain and reachable are
// about the Placements that may select the cluster (decide_state.go). An edit is one of the list of Placements, or
// of each Placement that dropped the cluster (decide_edits.go); it releases nothing that is held. An Event on the
// ClusterManagementAddOn explains why an add-on is kept or held.
package install
