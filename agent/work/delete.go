package work

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// deleteWork deletes a work: first its objects, then its AppliedManifestWork, then its finalizer. None of that waits
// for the hub to accept a status.
func (r *Reconciler) deleteWork(ctx context.Context, f *facts) reconcile.Outcome {
	outcome := reconcile.Done()
	var left prune.Remaining
	if f.applied != nil {
		outcome, left = r.deleteObjects(ctx, f)
		r.reportBlocked(f, f.work.ObjectMeta, &left)
	}
	if f.applied != nil {
		return outcome.And(r.publishDeleting(ctx, f, &left, ""))
	}
	wait, err := r.finalizeWork(ctx, f)
	if wait != nil {
		outcome = outcome.And(reconcile.DoneUntil(*wait)).And(reconcile.RetryBy(ctx, err, *wait))
	} else {
		outcome = outcome.And(reconcile.FromError(err))
	}
	if err == nil {
		return outcome
	}
	var refusal apierrors.APIStatus
	if reconcile.IsLostRace(err) || !errors.As(err, &refusal) {
		return outcome
	}
	return outcome.And(r.publishDeleting(ctx, f, &left, "nothing is left on the spoke, but the hub refuses to let the "+
		"work go: "+message.Cut(prune.ErrorText(err), message.MaxCause)))
}

// deleteObjects deletes the AppliedManifestWork and its objects; when it is gone the facts have none any more.
func (r *Reconciler) deleteObjects(ctx context.Context, f *facts) (reconcile.Outcome, prune.Remaining) {
	if f.applied.DeletionTimestamp.IsZero() {
		if err := r.deleteApplied(ctx, f); err != nil {
			return reconcile.FromError(err), prune.Remaining{}
		}
	}
	if f.applied == nil || !hasFinalizer(f.applied) {
		return reconcile.Waiting(f.now.Add(staleLimit)), prune.Remaining{}
	}
	r.claimTracked(f)
	left := r.pruner.Prune(ctx, r.pruneRequest(f, nil), inventory.Tracked(f.applied))
	outcome := reconcile.FromError(left.Err).And(reconcile.DoneUntil(left.Wake))
	if len(left.Pending) == 0 {
		return outcome.And(reconcile.FromError(r.finalizeApplied(ctx, f))), left
	}
	if f.applied.DeletionTimestamp.IsZero() {
		return outcome, left // the cache has it from before its deletion, so the list waits for the next pass
	}
	outcome = outcome.And(reconcile.FromError(r.publishList(ctx, f, inventory.Listed(f.applied, left.Pending))))
	if left.Unrecorded {
		// Else the intent stays as it is until the end: what it names and is gone costs no request.
		outcome = outcome.And(reconcile.FromError(r.narrowIntent(ctx, f, nil, left.Pending)))
	}
	return outcome, left
}

// restart deletes an AppliedManifestWork that a user deleted although its work lives. The next pass creates
// everything again.
func (r *Reconciler) restart(ctx context.Context, f *facts) reconcile.Outcome {
	outcome, left := r.deleteObjects(ctx, f)
	r.reportBlocked(f, f.work.ObjectMeta, &left)
	if f.applied == nil {
		return outcome.And(reconcile.Waiting(f.now.Add(staleDelay)))
	}
	return outcome
}

// publishDeleting publishes that the work is being deleted and what it waits for, or an obstacle. What it waits for may
// change often, so it is published at most once in a while.
func (r *Reconciler) publishDeleting(ctx context.Context, f *facts, left *prune.Remaining, obstacle string,
) reconcile.Outcome {
	deleting := status.Deleting(prune.Describe(left.Blocked), obstacle, left.Next)
	published := meta.FindStatusCondition(f.work.Status.Conditions, workv1.WorkDeleting)
	last := r.notes.of(f.owner).work
	if next := last.at.Add(deletingPause); published != nil && last.uid == f.work.UID && f.now.Before(next) {
		return reconcile.DoneUntil(next)
	}
	return r.publishStatus(ctx, f, status.With(f.work, deleting, f.now))
}

// pruneRequest is whose objects are pruned; applied are the UIDs of those that manifests mean.
func (r *Reconciler) pruneRequest(f *facts, applied map[types.UID]bool) prune.Request {
	return prune.Request{
		Owner: f.owner, UID: f.applied.UID, Now: f.now, Orphaned: f.orphans, Applied: applied, Room: f.room,
	}
}
