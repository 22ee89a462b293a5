// Package fleet is the one view that the reconcilers of the hub manager have of an add-on on all its clusters, each
// part read in one place, for all that ask:
//
//   - Placements: what Placements have decided, in which decision groups, and the proof that the decision is complete;
//   - Unserved: which of the selected clusters get add-ons at all;
//   - Members: the ManagedClusterAddOns that exist. A selected cluster without one is awaited if it gets add-ons.
//
// The decision of a Placement is several PlacementDecisions, which a placement controller writes one after the other.
//
//	whose Placement       the PlacementDecisions are complete when
//	our own               their content is that of the mark (Mark), which our placement writes after all of them
//	another controller's  their number of clusters and their names are those in the status of the Placement
//	nobody's              there is a decision: nothing says whether there will be more
//
// Owner says which of several Placements a cluster belongs to, and which others may select it as well.
//
// Incomplete decisions hold a rollout and the configuration of an add-on, and nothing is removed because of them. For a
// removal, the Placement must also be decided since its last edit, and its state must have been seen unchanged for a
// while: QuietPeriod, or FailoverPeriod where another controller may have stopped between two writes that leave the
// number as it was. Changes of our own hold up a cluster that they dropped a minute ago no longer: others may come and
// go.
package fleet
