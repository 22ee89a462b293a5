// Package install turns a ClusterManagementAddOn with install strategy Placements, and the decisions of its Placements,
// into ManagedClusterAddOns. The key of a pass is one add-on on one cluster, so that a change of a decision costs as
// much on a hub of 3,000 clusters as on one of three, and no cluster waits for another.
//
// An add-on is installed where one of the Placements selects the cluster. It is uninstalled only when all this holds:
//
//   - the ClusterManagementAddOn exists, is not being deleted, and is managed by its life cycle annotation;
//   - this reconciler created the ManagedClusterAddOn: label addon.spokelet.io/installed-by=placement. What people
//     created is never deleted here; to hand it over, set the label. What another add-on manager created for a
//     placement gets the label while a placement selects its cluster (adopt.go): its managed fields say that one writer
//     made both the add-on and its owner;
//   - every listed Placement exists, is not misconfigured, and its decisions are settled (see settled.go): a Placement
//     that is missing, or whose pages are just being rewritten, uninstalls nothing.
//
// Where an add-on is kept against its Placements, an Event on the ClusterManagementAddOn says why.
//
// The reconciler also keeps the owner reference from every ManagedClusterAddOn to its ClusterManagementAddOn, for
// strategy Manual too: without one nothing is deployed.
package install
