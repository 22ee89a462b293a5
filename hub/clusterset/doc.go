// Package clusterset reports in the status of each ManagedClusterSet whether it has clusters, and how many. The
// condition is that of OCM, word for word, so it does not matter which hub manager writes it.
//
// A change of a cluster starts a pass only for the sets that it joins or leaves.
package clusterset
