// Package clustersets knows which clusters are in a ManagedClusterSet. The hub manager uses it where it decides
// Placements, and where it reports the number of clusters of a set.
package clustersets
