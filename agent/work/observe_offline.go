package work

import (
	"context"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeOffline collects the facts about a work of which there is a copy. Without one that can be used there is no
// work in the facts, which says nothing about whether it exists.
func (r *Reconciler) observeOffline(ctx context.Context, f *facts) (*facts, error) {
	f.offline = true
	if !r.absence.trusted.Load() {
		return f, nil
	}
	size := r.Cache.Size(f.owner.Name)
	large := size > largeWork
	if large && !r.enter(f, reconcile.Long) {
		return f, nil
	}
	var known *offline.Copy
	var err error
	if full := f.room.Decode(ctx, size, func() {
		known, err = r.Cache.Load(ctx, f.owner.Name)
	}); full != nil {
		return f, full
	}
	if err != nil || known == nil {
		return f, err
	}
	if !large && !r.enter(f, lengthOf(known.Work)) {
		return f, nil
	}
	f.applied, err = inventory.Read(ctx, r.inventory.Client, r.inventory.Name(f.owner.Name))
	if err != nil {
		return f, err
	}
	f.work, f.copied = known.Work, known
	r.checkLag(f)
	if why := unusable(f.applied, known, r.inventory.Spec(f.work.Name)); why != "" {
		f.work = nil
		log.FromContext(ctx).V(1).Info("the copy of the work is not used", "reason", why)
		return f, nil
	}
	return f, nil
}

// unusable returns why a copy must not be used; empty when it may be. The AppliedManifestWork has to
// be the one for which the copy was made, and whole.
func unusable(applied *workv1.AppliedManifestWork, known *offline.Copy, spec workv1.AppliedManifestWorkSpec) string {
	switch {
	case applied == nil:
		return "there is no AppliedManifestWork"
	case applied.UID != known.Applied:
		return "the AppliedManifestWork is another one"
	case !applied.DeletionTimestamp.IsZero():
		return "the AppliedManifestWork is being deleted"
	case applied.Spec != spec:
		return "the AppliedManifestWork belongs to another hub or agent"
	}
	return inventory.Outdated(applied, known.Work)
}

// recall puts into the work which manifests became complete that the cache of the hub does not show, because their
// status is on its way or the hub was away, so that nothing is decided by the status at the hub alone. The status of
// the pass tells the hub; an error is about the disk.
func (r *Reconciler) recall(ctx context.Context, f *facts) error {
	if r.Cache != nil {
		var err error
		if full := f.room.Decode(ctx, r.Cache.Unread(f.work.Name, f.work.UID), func() {
			f.learned, err = r.Cache.UnreportedStatus(ctx, f.work.Name, f.work.UID)
		}); full != nil {
			return full
		}
		if err != nil {
			return err
		}
		f.inCopy = f.learned != nil
	}
	if known := r.notes.of(f.owner); known.learned != nil && known.learnedOf == f.work.UID {
		f.learned = known.learned // later than what is copied
	}
	if f.complete(); f.inCopy && f.atHub == nil {
		r.Cache.StatusReported(f.work.Name)
	}
	return nil
}
