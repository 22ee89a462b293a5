// Package layout distributes the clusters that a Placement selects to decision groups and PlacementDecisions, so that
// clusters stay where they are (docs/adr/0018-placement.md). It computes only: objects in, objects out.
package layout
