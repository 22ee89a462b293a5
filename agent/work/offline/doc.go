// Package offline stores copies of ManifestWorks on disk, so that an agent that restarts while the hub is away knows
// the works of its cluster.
//
// A copy is one encrypted file. The key is in a Secret on the spoke, with the name of the one directory that holds
// valid copies; a reader of the disk alone learns the names and UIDs of works, and a writer of the disk alone cannot
// make a copy. A copy that is missing, damaged, or of another hub, cluster, work or generation is not a copy: the store
// returns nothing that it cannot trust. It cannot tell an older copy of the same generation of a work from the newest
// one; for generations the reader compares the copy with the AppliedManifestWork.
//
// The store knows nothing of reconcilers. It decides neither when a work is copied nor whether a copy may be used.
package offline
