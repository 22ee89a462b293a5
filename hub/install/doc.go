// Package install turns a ClusterManagementAddOn with install strategy Placements, and the decisions of its Placements,
// into ManagedClusterAddOns. The key of a pass is one add-on on one cluster, so that a change of a decision costs as
// much on a hub of 3,000 clusters as on one of three, and no cluster waits for another.
//
// An add-on is installed where one of the Placements selects the cluster. It is uninstalled only if all of this is
// true:
//
//   - the ClusterManagementAddOn exists, is not being deleted, and is managed according to its life cycle annotation;
//   - this reconciler created the ManagedClusterAddOn: label addon.spokelet.io/installed-by=placement. An add-on that a
//     person created is never deleted here; the label hands it over. An add-on that another manager created for a
//     placement gets the label while a placement selects its cluster (decide_adopt.go): its managedFields show that one
//     writer created both the add-on and its owner reference;
//   - every listed Placement exists, is not misconfigured, and its decisions are certain (decide_unselected.go): a
//     Placement that is missing, or whose decision slices are being rewritten, uninstalls nothing.
//
// An Event on the ClusterManagementAddOn explains why an unselected add-on is not uninstalled.
//
// The reconciler also maintains the owner reference from every ManagedClusterAddOn to its ClusterManagementAddOn, for
// strategy Manual, too: without it nothing is deployed.
package install
