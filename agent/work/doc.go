// Package work makes the objects of the ManifestWorks of one cluster exist on that cluster, keeps them so, tells the
// hub about them and takes them down again. On the spoke nobody else writes ManifestWorks or AppliedManifestWorks.
//
// One reconciler owns the whole life of a work, so that nothing races with itself. A pass
//
//   - observes: the work and its AppliedManifestWork from the caches, what each manifest means (read once per
//     generation), and what the ledger knows of each object;
//   - decides its phase: apply, release (the work is being deleted), drain (somebody deleted the AppliedManifestWork);
//   - acts: writes down which objects are about to be made, applies them rank by rank and several at a time, deletes
//     what no manifest means any more;
//   - concludes the status of every manifest and of the work, and publishes it once on either side.
//
// A second, small reconciler looks after AppliedManifestWorks that have no work any more and evicts them after a grace.
//
// What makes it quick and quiet is the ledger: a pure cache that knows, per object, what this process last made of it
// and what was heard since. A metadata-only watch for each resource and namespace that holds an object of ours feeds
// it. An event that only reports our own write, or only a new status that nobody reads, ends there; any other wakes the
// works concerned. So a change on the spoke is repaired within a moment, and an agent at rest sends nothing. A restart
// empties the ledger and costs one read per object.
//
// What must survive lives in the cluster: the list in AppliedManifestWork.status.appliedResources, and before it the
// annotation AnnotationIntent, name every object before it is made. What is not known is never deleted: a manifest
// that cannot be read keeps every tracked object that it may mean, and an object whose deletion failed stays listed.
package work
