// Package work applies the ManifestWorks of one cluster to that cluster, keeps their objects in the desired state,
// reports their status to the hub and deletes them. On the spoke nobody else writes ManifestWorks or
// AppliedManifestWorks.
//
// One reconciler owns the whole life of a work, so that nothing races with itself. A pass
//
//   - observes: the work and its AppliedManifestWork from the caches, its manifests (decoded once per generation), the
//     state of their objects, and what the executor of the work may do (observe.go);
//   - plans: one step for each manifest, with its reason, and the objects that may be created (plan.go, pure);
//   - acts: records the objects that may be created, carries out the steps rank by rank and several at a time, and
//     prunes the objects that no manifest means any more (act.go, record.go);
//   - concludes the status of every manifest and of the work (conclude.go, pure), and publishes it once on either side
//     (publish.go).
//
// A second, small reconciler cares for AppliedManifestWorks that have no work any more and evicts them after a grace
// period (evict.go).
//
// Each part is a package, and only this one knows all of them: manifest, spoke, inventory, missing, watch, feedback,
// executor, apply, prune, status and offline. Each has a doc.go.
//
// A watch wakes a work when one of its objects changes, so a change on the spoke is repaired within a moment, and an
// agent at rest sends nothing. A restart costs one read per object.
//
// A manifest that a rule found Complete is frozen: its object is read but never written, also when it was deleted, and
// its condition Applied keeps the generation that is in force. A complete work freezes as a whole; a new generation of
// it still reaches the manifests that are not complete themselves. A manifest that is not frozen any more is applied at
// once.
//
// Everything that must survive lives in the cluster. What is unknown is never deleted: a manifest that cannot be read
// keeps every tracked object that it may mean, and an object whose deletion failed stays listed.
//
// A cache may be behind, after a restart above all. Where the AppliedManifestWork records that another work of the name
// or a later generation was applied, or records nothing and objects would go, a pass asks the hub before it deletes or
// applies anything (behind.go). If the hub has the work otherwise, the pass waits for the cache; if it does not answer,
// the pass only repairs.
//
// The spoke comes before the hub: a pass hands its status to the publisher and waits for the result as long as a hub
// usually takes, and not at all while the hub is slow. One status of a work is on its way at a time; its end wakes the
// work, so that the newest one follows. A finalizer goes by a publisher of its own in the same way, and nothing of the
// work is applied before the hub has it. The pass waits for nothing else that only the hub can change.
//
// An empty hub deletes nothing by itself. The grace period of an AppliedManifestWork without a work begins only after
// the hub has listed its works to this process, and its objects are deleted only after the hub, asked again, says that
// the work does not exist. A user who lost the works of a hub has the grace period, which Events on the hub announce,
// to restore them. When many works are missing at once, as on a hub that was restored from a backup, their objects stay
// until a person confirms on the hub that they may go (lost.go, package missing). So do the objects that a work does
// not have any more because it is of an earlier generation than was applied (lost.go).
//
// An agent that starts while the hub is away knows its works by copies on disk (offline.go). Until the hub has listed
// its works, a pass keeps the objects that the AppliedManifestWork lists as the copy says, and does nothing else: a
// copy may be old, so nothing new is created, deleted or evicted, and nothing is written to the hub.
//
// Events on the hub regard the ManifestWork: ApplyFailed, ApplyRecovered, DriftRepaired, DeletionBlocked,
// EvictionStarted, EvictionHeld, EvictionStopped, Evicted, PruneHeld. The metrics, all spokelet_work_*, have no name of
// an object in any label.
package work
