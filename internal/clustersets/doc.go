// Package clustersets knows which clusters are in a ManagedClusterSet, and which ManagedClusterSetBindings count. The
// hub manager uses it where it decides Placements, and where it reports the number of clusters of a set and whether a
// set is bound.
package clustersets
