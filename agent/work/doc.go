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
// How an object is kept depends on the strategy of its manifest. Update merges by kind (merge.go, kinds.go) and leaves
// alone what the API server fills in and what was set through the scale subresource. ServerSideApply lets the managed
// fields say whether the configuration is still in force, so that what others hold costs a look and no write; fields
// under ignoreFields are left out of it, unless nobody else holds them (configuration.go). CreateOnly and ReadOnly see
// to the owner only.
//
// A work with an executor gets no more than that ServiceAccount may have: the guard asks about each manifest before
// anything is written or read, and remembers the answers until RBAC changes. What hands out rights is written only
// after the executor sent the same request as a dry run (executor_trial.go).
//
// What the hub wants to know of an object, by feedback rules and condition rules, is read when the object moves and
// kept in its record; a new status is news only where such a rule reads it. Everything is watched, so
// feedbackScrapeType and --max-feedback-watch have nothing to choose. Expressions and paths are anybody's: they are
// compiled once, what they may cost and find is bounded, an expensive rule is evaluated more rarely, and one bad rule
// or value degrades alone: what the API would refuse is told in StatusFeedbackSynced or in
// work.spokelet.io/ConditionRulesValid and left out. A manifest that a rule found Complete is frozen: it is read but
// never written, also when its object is cleared away, and its condition Applied keeps the generation that is in
// force. A complete work freezes as a whole; a new generation of it still reaches the manifests that are not complete
// themselves. What thaws, because a rule went or its answer turned, is applied at once.
//
// What the API server refuses is not asked again with every pass. The record of the object keeps the refusal and its
// beginning; a change of the manifest or of the object ends it, and what changes without a word, such as a right, is
// found by attempts that become ever rarer. All messages of a status share one budget, so that the hub always takes it
// (status_budget.go).
//
// What must survive lives in the cluster: the list in AppliedManifestWork.status.appliedResources, and before it the
// annotation AnnotationIntent, name every object before it is made. What is not known is never deleted: a manifest
// that cannot be read keeps every tracked object that it may mean, and an object whose deletion failed stays listed.
//
// How things go. Objects are deleted in the reverse of the order of applying, by kind: custom resources before their
// definitions, workloads before the rights and namespaces that they need to clean up, also when only some manifests
// leave a work. The answer to a deletion says whether the object is gone, so what nothing holds goes in one pass with
// one request each. A rank begins when the one before is gone. An object that does not go, because a finalizer stays or
// the API server refuses, holds up the ranks after it for OrderPatience, counted from its deletion timestamp: long
// enough for a controller to do its work, and not for ever where nobody removes the finalizer. Nothing is lost by that:
// what is not gone stays listed and keeps its work. The condition Deleting names what is waited for, its finalizers,
// and since when; it is told at most once a second and never waited for. A hub that does not answer a status within
// hubPatience is left alone for hubPause, so the spoke is cared for meanwhile.
//
// An empty hub takes nothing down by itself. The grace of an AppliedManifestWork without work begins only after the hub
// has listed its works to this process, and what it covers is deleted only after the hub, asked again, says that the
// work does not exist. A hub that does not answer or does not know the agent is no such answer. Whoever lost the works
// of a hub has the grace, which Events on the hub announce, to bring them back.
//
// An agent that starts while the hub is away knows its works by copies on disk (offline*.go). Until the hub has listed
// its works, a pass keeps what the AppliedManifestWork lists as the copy says, and does nothing else: a copy may be
// old, so nothing new is made, deleted or evicted by it, and the hub is not spoken to. The copies are sealed, with a
// key of the spoke that is good for one directory only, and each is removed before what it says is out of date. The
// AppliedManifestWork has the generation that was applied, so that an older copy is of no use to whoever puts it back.
//
// Events on the hub regard the ManifestWork and tell what changed: ApplyFailed, ApplyRecovered, DriftRepaired,
// DeletionBlocked, EvictionStarted, EvictionStopped, Evicted. What happens again is counted up in the same Event, and
// what is too much is dropped. The metrics, all spokelet_work_*, have no name of an object in any label.
package work
