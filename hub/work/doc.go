// Package work takes away ManifestWorks that have done what they were for: those that are complete and say in
// spec.deleteOption.ttlSecondsAfterFinished how long they are to stay after that (contract, work 1.3).
//
//	no such time, or part of a ManifestWorkReplicaSet ──> none of our business
//	not Complete, or Complete as of an older spec     ──> waits for the agent of the cluster to say so
//	Complete since less than that                     ──> looked at again at that very instant
//	Complete for as long as that, or a time below 1   ──> deleted
//
// OCM has this behind a feature gate that is off. A work without the field is never touched, and who sets it wants it,
// so here it is on.
//
// A hub has tens of thousands of ManifestWorks and a handful of these, and nothing in their metadata tells them apart.
// So they are watched in full, but each is looked at when it arrives and only what waits to be deleted is remembered.
// What is deleted must still be what was seen: a work that changed meanwhile is looked at anew.
package work
