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
// An add-on is removed from a cluster only if all of this is true (docs/reference/hub.md, "Removal"):
//
//   - the ClusterManagementAddOn exists, is not being deleted, and is managed according to its life cycle annotation;
//   - this reconciler created the ManagedClusterAddOn: label addon.spokelet.io/installed-by=placement. An add-on that a
//     person created is never deleted here; the label hands it over. An add-on that another manager created for a
//     placement gets the label while a placement selects its cluster (decide_adopt.go): its managedFields show that one
//     writer created both the add-on and its owner reference;
//   - every listed Placement exists, is not misconfigured, and its decisions are certain (decide_certain.go): a
//     Placement that is missing, or whose decision slices are being rewritten, uninstalls nothing;
//   - the cluster is not unselected merely because it is unavailable (decide_reach.go);
//   - not too many clusters lose the add-on at once without an edit that explains it, or a person confirmed it
//     (decide_removal.go).
//
// An Event on the ClusterManagementAddOn explains why an unselected add-on is not removed.
package install
