package work

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// behindPause is when a pass looks again at a work that the hub has otherwise than the cache.
const behindPause = time.Second

// doubtful reports whether the hub must be asked before a pass goes by the cache: the AppliedManifestWork records that
// another work of the name or a later generation was applied, or records nothing and objects would be deleted. What is
// being deleted already goes whatever the hub says.
func (f *facts) doubtful() bool {
	switch {
	case f.offline || f.stale || f.work == nil || f.applied == nil || !f.applied.DeletionTimestamp.IsZero():
		return false
	case inventory.IsRecorded(f.applied):
		return inventory.Outdated(f.applied, f.work) != ""
	case !f.work.DeletionTimestamp.IsZero():
		return true
	}
	return !inventory.Whole(f.manifests, inventory.Tracked(f.applied))
}

// standingOf compares the work in the cache with what the hub says; live is nil when the hub has none.
func standingOf(cached *workv1.ManifestWork, live *metav1.PartialObjectMetadata, err error) standing {
	switch {
	case err != nil:
		return standingUnanswered
	case live == nil || live.UID != cached.UID || live.Generation > cached.Generation,
		live.DeletionTimestamp.IsZero() != cached.DeletionTimestamp.IsZero():
		return standingBehind
	}
	return standingConfirmed
}

// checkHub asks the hub for a work of which the cache is doubtful. A hub that did not answer is left alone for a while,
// so that it does not hold up each pass.
func (r *Reconciler) checkHub(ctx context.Context, f *facts) {
	if !f.doubtful() {
		return
	}
	if until, failed := r.notes.of(f.owner).unanswered.awaits(f.work.UID, f.now); until != nil {
		f.standing, f.askAgain, f.unanswered = standingUnanswered, *until, failed
		return
	}
	live, err := r.liveWork(ctx, f.work.Name)
	f.standing, f.askAgain = standingOf(f.work, live, err), f.now.Add(behindPause)
	if f.standing == standingUnanswered {
		f.askAgain, f.unanswered = f.now.Add(hubPause), err
		r.notes.change(f.owner, func(n *note) {
			n.unanswered = delivery{uid: f.work.UID, silentUntil: f.askAgain, failed: err}
		})
	}
}

// waits reports whether nothing can be done before the cache has the work as the hub does: it is behind, or what would
// be done needs the word of the hub. A work without our finalizer was never applied, so there is nothing to keep.
func (f *facts) waits() bool {
	return f.standing == standingBehind || f.standing == standingUnanswered &&
		(!f.work.DeletionTimestamp.IsZero() || !slices.Contains(f.work.Finalizers, names.FinalizerManifestWork))
}

// catchUp waits for a cache.
func (r *Reconciler) catchUp(ctx context.Context, f *facts) reconcile.Outcome {
	if f.askAgain.IsZero() {
		return reconcile.Waiting(f.now.Add(staleDelay))
	}
	return reconcile.Waiting(f.askAgain).And(reconcile.RetryBy(ctx, f.unanswered, f.askAgain))
}

// keepUnanswered keeps the objects of a work as the cache has it while the hub does not say whether that is so.
func (r *Reconciler) keepUnanswered(ctx context.Context, f *facts) reconcile.Outcome {
	after, outcome := r.keep(ctx, f)
	if after != nil {
		r.keepCompletions(f, f.reported(), after)
	}
	return outcome.And(reconcile.DoneUntil(f.askAgain)).And(reconcile.RetryBy(ctx, f.unanswered, f.askAgain))
}
