// Package work deletes completed ManifestWorks whose time to live, spec.deleteOption.ttlSecondsAfterFinished, is over
// (docs/reference/work.md, "Delete options").
//
//	no time to live, or of a ManifestWorkReplicaSet   ──> ignored
//	not Complete, or Complete for an older spec       ──> waits for the agent of the cluster
//	Complete for less than that time                  ──> checked again at that instant
//	Complete for that time, or a time below 1         ──> deleted
//
// In OCM, this is behind a feature gate that is off. A work without the field is never touched, and setting the field
// is an explicit request, so here it is on.
//
// A hub has tens of thousands of ManifestWorks and a handful of these, and their metadata does not distinguish them.
// Those of add-ons are in the cache of the manager. All others are watched, but only those that wait for their deletion
// are kept in memory. A deletion is guarded by UID and resourceVersion: a work that has changed is checked again.
package work
