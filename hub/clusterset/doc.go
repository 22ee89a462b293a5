// Package clusterset keeps the ManagedClusterSets default and global as OCM does, and reports in the status of each
// ManagedClusterSet whether it has clusters, and how many. The condition is that of OCM, word for word, so it does not
// matter which hub manager writes it.
//
//	decide: default or global without an object -> create it; with another selector -> change it back, unless its
//	annotation autoupdate says "false"; then, and of every other set, the status
//
// A change of a cluster starts a pass only for the sets that it joins or leaves.
package clusterset
