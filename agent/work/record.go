package work

import (
	"context"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// record creates or repairs the AppliedManifestWork with the objects that are about to be created, so that none of them
// is forgotten whatever happens next.
func (r *Reconciler) record(ctx context.Context, f *facts, objects []workv1.AppliedManifestResourceMeta) error {
	if f.applied != nil {
		prepare := r.inventory.Prepare
		if f.onlyKept() {
			prepare = r.inventory.Keep
		}
		applied, err := prepare(ctx, f.applied, f.work, objects)
		r.wroteApplied(f, applied)
		return err
	}
	applied, created, err := r.inventory.Create(ctx, f.work, objects)
	if err != nil {
		return err
	}
	r.wroteApplied(f, applied)
	if created && len(f.work.Status.Conditions) == 0 {
		r.notes.change(f.owner, func(n *note) { n.created, n.createdAt = applied.UID, r.Clock.Now() })
	}
	return nil
}

// publishNotRecorded ends a pass that could not record which objects it was about to create, so that it creates none.
// The status of the work says so where a person has to help.
func (r *Reconciler) publishNotRecorded(ctx context.Context, f *facts, err error) reconcile.Outcome {
	applied, permanent := status.NotRecorded(err)
	outcome := reconcile.Done()
	if !permanent {
		outcome = reconcile.FromError(err)
	}
	if applied == nil {
		return outcome
	}
	return outcome.And(r.publishStatus(ctx, f, status.With(f.work, *applied, f.now)))
}

// wroteApplied makes an AppliedManifestWork the one of the pass and, if it was written, remembers the write.
func (r *Reconciler) wroteApplied(f *facts, applied *workv1.AppliedManifestWork) {
	if applied == f.applied {
		return
	}
	f.applied = applied
	r.notes.change(f.owner, func(n *note) {
		n.applied = written{
			uid: applied.UID, version: applied.ResourceVersion, at: r.Clock.Now(),
			deleting: !applied.DeletionTimestamp.IsZero(),
		}
	})
}

// publishList writes the list of applied resources, if it differs.
func (r *Reconciler) publishList(ctx context.Context, f *facts, list []workv1.AppliedManifestResourceMeta) error {
	applied, err := r.inventory.Publish(ctx, f.applied, list)
	r.wroteApplied(f, applied)
	return err
}

// recordGeneration records the generation that is about to be applied: of a work that the hub confirmed, so that it is
// not asked again, and where the copy of a former generation stays because it knows more than the hub, so that it is
// not used.
func (r *Reconciler) recordGeneration(ctx context.Context, f *facts) error {
	if f.standing != standingConfirmed && !f.copyKnowsMore() {
		return nil
	}
	applied, err := r.inventory.RecordGeneration(ctx, f.applied, f.work)
	r.wroteApplied(f, applied)
	return err
}

// narrowIntent removes from the intent the objects that no manifest means and that are not pending.
func (r *Reconciler) narrowIntent(
	ctx context.Context, f *facts, manifests []manifest.Manifest, pending []workv1.AppliedManifestResourceMeta,
) error {
	applied, err := r.inventory.Narrow(ctx, f.applied, manifests, pending)
	r.wroteApplied(f, applied)
	return err
}

// deleteApplied deletes the AppliedManifestWork, with the finalizer that makes it wait for its objects.
func (r *Reconciler) deleteApplied(ctx context.Context, f *facts) error {
	applied, err := r.inventory.AddFinalizer(ctx, f.applied)
	r.wroteApplied(f, applied)
	if err != nil {
		return err
	}
	applied, err = r.inventory.Delete(ctx, f.applied)
	switch {
	case err != nil:
		return err
	case applied == nil:
		r.appliedGone(f)
	case applied != f.applied:
		r.wroteApplied(f, applied)
	default: // the answer did not say; the cache will show it
		r.notes.change(f.owner, func(n *note) {
			n.applied = written{
				uid: applied.UID, version: applied.ResourceVersion, at: r.Clock.Now(), deleting: true,
			}
		})
	}
	return nil
}

// finalizeApplied removes our finalizer from the AppliedManifestWork, whose objects are gone.
func (r *Reconciler) finalizeApplied(ctx context.Context, f *facts) error {
	if f.applied.DeletionTimestamp.IsZero() {
		live, err := inventory.Read(ctx, r.inventory.Live, f.applied.Name)
		if err != nil {
			return err
		}
		if live == nil || live.UID != f.applied.UID {
			r.appliedGone(f)
			return nil
		}
		f.applied = live
	}
	r.announceGone(f, inventory.LastFinalizer(f.applied))
	applied, err := r.inventory.Finalize(ctx, f.applied)
	switch {
	case err != nil:
		r.announceGone(f, false)
		return err
	case applied == nil:
		r.appliedGone(f)
	default:
		r.wroteApplied(f, applied)
	}
	return nil
}

// announceGone notes for the evictor that the AppliedManifestWork of a work goes by the present request, or that it
// does not. The hub may report that the work is gone before the cache reports that the AppliedManifestWork is, and the
// evictor would read each object once more. The note comes before the request, so that the evictor, which drops it when
// the cache reports, never does so too early.
func (r *Reconciler) announceGone(f *facts, goes bool) {
	evictor := watch.Owner{Applied: true, Name: f.applied.Name}
	switch uid := f.applied.UID; {
	case f.owner == evictor:
	case goes:
		r.notes.change(evictor, func(n *note) { n.applied = written{uid: uid, at: r.Clock.Now(), gone: true} })
	default:
		r.notes.Forget(evictor)
	}
}

// appliedGone remembers that the AppliedManifestWork is gone, whatever a cache may say for a moment.
func (r *Reconciler) appliedGone(f *facts) {
	uid := f.applied.UID
	r.notes.change(f.owner, func(n *note) { n.applied = written{uid: uid, at: r.Clock.Now(), gone: true} })
	r.store.Forget(f.owner)
	f.applied = nil
}

// hasFinalizer reports whether the AppliedManifestWork has our finalizer.
func hasFinalizer(applied *workv1.AppliedManifestWork) bool {
	return slices.Contains(applied.Finalizers, names.FinalizerAppliedManifestWork)
}

// claimTracked registers only the tracked objects with the store.
func (r *Reconciler) claimTracked(f *facts) {
	objects := map[manifest.ID]watch.Key{}
	for _, entry := range inventory.Tracked(f.applied) {
		objects[manifest.IDOf(entry)] = watch.Key{Resource: manifest.ResourceOf(entry), Namespace: entry.Namespace}
	}
	r.store.Claim(f.owner, objects, nil)
}
