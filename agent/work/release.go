package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// hubPatience is how long one request to the hub may take before the pass goes on without its answer.
	hubPatience = 3 * time.Second
	// hubPause is how long a hub that did not answer is not asked to take the status of the same work.
	hubPause = 10 * time.Second
	// tellPause is the least time between two statuses that differ only in what a deletion waits for.
	tellPause = time.Second
)

// release takes down a work that is being deleted: first its objects, then its AppliedManifestWork, then its finalizer.
// None of that waits for the hub to take a status.
func (r *Reconciler) release(ctx context.Context, f *facts) reconcile.Outcome {
	if f.applied == nil {
		// The cache may not know yet what was made a moment ago, so the API server has the last word.
		live, err := readApplied(ctx, r.Spoke.GetAPIReader(), appliedName(r.HubHash, f.work.Name))
		if err != nil {
			return reconcile.FromError(err)
		}
		f.applied = live
	}
	outcome := reconcile.Done()
	var left drained
	if f.applied != nil {
		outcome, left = r.takeDown(ctx, f)
		r.report(f, f.work.ObjectMeta, &left)
	}
	if f.applied != nil {
		return outcome.And(r.publishDeleting(ctx, f, &left, ""))
	}
	err := r.releaseWork(ctx, f)
	if err == nil {
		return outcome
	}
	outcome = outcome.And(reconcile.FromError(err))
	var refusal apierrors.APIStatus
	if reconcile.IsLostRace(err) || !errors.As(err, &refusal) {
		return outcome
	}
	return outcome.And(r.publishDeleting(ctx, f, &left,
		"nothing is left on the spoke, but the hub refuses to let the work go: "+cut(tellable(err), maxBecause)))
}

// takeDown deletes the AppliedManifestWork and its objects; when it is gone the facts have none any more.
func (r *Reconciler) takeDown(ctx context.Context, f *facts) (reconcile.Outcome, drained) {
	if f.applied.DeletionTimestamp.IsZero() {
		if err := r.deleteApplied(ctx, f); err != nil {
			return reconcile.FromError(err), drained{}
		}
	}
	if f.applied == nil || !slices.Contains(f.applied.Finalizers, names.FinalizerAppliedManifestWork) {
		return reconcile.Waiting(f.now.Add(staleLimit)), drained{}
	}
	r.claimTracked(f)
	left := r.drainer.drain(ctx, f.holder, f.applied.UID, f.now, tracked(f.applied), exempt{orphaned: f.spares})
	outcome := reconcile.FromError(left.err).And(reconcile.DoneUntil(left.wake))
	if len(left.pending) > 0 {
		return outcome.And(reconcile.FromError(r.shrinkApplied(ctx, f, left.pending))), left
	}
	return outcome.And(reconcile.FromError(r.releaseApplied(ctx, f))), left
}

// deleteApplied tells the AppliedManifestWork to go, with the finalizer that makes it wait for its objects.
func (r *Reconciler) deleteApplied(ctx context.Context, f *facts) error {
	if !slices.Contains(f.applied.Finalizers, names.FinalizerAppliedManifestWork) {
		after := f.applied.DeepCopy()
		after.Finalizers = append(after.Finalizers, names.FinalizerAppliedManifestWork)
		if _, err := reconcile.PatchMain(ctx, r.Spoke.GetClient(), f.applied, after); err != nil {
			return fmt.Errorf("repairing the AppliedManifestWork: %w", err)
		}
		r.wroteApplied(f, after)
	}
	answer, err := r.drainer.spoke.retire(ctx, appliedResource(), identity{Name: f.applied.Name}, f.applied.UID, "")
	if apierrors.IsNotFound(err) || (err == nil && answer.gone) {
		r.appliedGone(f)
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting the AppliedManifestWork %s: %w", f.applied.Name, err)
	}
	// The answer is the AppliedManifestWork as it is now; without it the cache will tell.
	live := &workv1.AppliedManifestWork{}
	if json.Unmarshal(answer.answer, live) == nil && live.UID == f.applied.UID && !live.DeletionTimestamp.IsZero() {
		r.wroteApplied(f, live)
		return nil
	}
	r.memory.change(f.holder, func(k *recall) {
		k.applied = written{uid: f.applied.UID, version: f.applied.ResourceVersion, at: r.Clock.Now(), deleting: true}
	})
	return nil
}

// appliedResource is where AppliedManifestWorks are served.
func appliedResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: workv1.GroupVersion.Group, Version: workv1.GroupVersion.Version, Resource: "appliedmanifestworks",
	}
}

// claimTracked tells the ledger that nothing but the tracked objects matters any more.
func (r *Reconciler) claimTracked(f *facts) {
	objects := map[identity]watchKey{}
	for _, entry := range tracked(f.applied) {
		objects[entryIdentity(entry)] = watchKey{resource: entryResource(entry), namespace: entry.Namespace}
	}
	r.ledger.claim(f.holder, objects, nil)
}

// shrinkApplied takes from the list what is gone. When the AppliedManifestWork of the cache is from before its
// deletion, the list waits for the next pass.
func (r *Reconciler) shrinkApplied(ctx context.Context, f *facts, pending []workv1.AppliedManifestResourceMeta) error {
	if f.applied.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.publishApplied(ctx, f, listed(f.applied, pending))
}

// releaseApplied takes our finalizer from the AppliedManifestWork, whose objects are gone.
func (r *Reconciler) releaseApplied(ctx context.Context, f *facts) error {
	if f.applied.DeletionTimestamp.IsZero() {
		live, err := readApplied(ctx, r.Spoke.GetAPIReader(), f.applied.Name)
		if err != nil {
			return err
		}
		if live == nil || live.UID != f.applied.UID {
			r.appliedGone(f)
			return nil
		}
		f.applied = live
	}
	after := f.applied.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(name string) bool {
		return name == names.FinalizerAppliedManifestWork
	})
	r.lettingGo(f, len(after.Finalizers) == 0)
	_, err := reconcile.PatchMain(ctx, r.Spoke.GetClient(), f.applied, after)
	if err != nil {
		r.lettingGo(f, false)
	}
	switch {
	case apierrors.IsNotFound(err):
		r.appliedGone(f)
	case err != nil:
		return fmt.Errorf("releasing the AppliedManifestWork %s: %w", f.applied.Name, err)
	case len(after.Finalizers) == 0:
		r.appliedGone(f)
	default:
		r.wroteApplied(f, after)
	}
	return nil
}

// lettingGo notes for the evictor that the AppliedManifestWork of a work goes by the present request, or that it does
// not. The hub may tell that the work is gone before the cache tells that of the AppliedManifestWork, and the evictor
// would look at each object once more. It is noted before the request, so that the evictor, which forgets it when the
// cache tells, never does so too early.
func (r *Reconciler) lettingGo(f *facts, goes bool) {
	evictors := holder{applied: true, name: f.applied.Name}
	switch uid := f.applied.UID; {
	case f.holder == evictors:
	case goes:
		r.memory.change(evictors, func(k *recall) { k.applied = written{uid: uid, at: r.Clock.Now(), gone: true} })
	default:
		r.memory.forget(evictors)
	}
}

// appliedGone remembers that the AppliedManifestWork is gone, whatever a cache may say for a moment.
func (r *Reconciler) appliedGone(f *facts) {
	uid := f.applied.UID
	r.memory.change(f.holder, func(k *recall) { k.applied = written{uid: uid, at: r.Clock.Now(), gone: true} })
	r.ledger.claim(f.holder, nil, nil)
	f.applied = nil
}

// releaseWork takes our finalizer from the work, of which nothing is left.
func (r *Reconciler) releaseWork(ctx context.Context, f *facts) error {
	if !slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	before, after := lightWork(f.work), lightWork(f.work)
	after.Finalizers = slices.DeleteFunc(slices.Clone(after.Finalizers), func(name string) bool {
		return name == names.FinalizerManifestWork
	})
	if len(after.Finalizers) == 0 {
		after.Finalizers = nil
	}
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	_, err := reconcile.PatchMain(within, r.Hub.GetClient(), before, after)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("releasing the ManifestWork: %w", err)
	}
	if len(after.Finalizers) == 0 {
		r.memory.change(f.holder, func(k *recall) { k.work = written{uid: f.work.UID, at: r.Clock.Now(), gone: true} })
	}
	return nil
}

// publishDeleting says on the hub that the work is going and what it waits for; with obstacle it says that instead.
// What is waited for may change often, so it is told at most once in a while.
func (r *Reconciler) publishDeleting(ctx context.Context, f *facts, left *drained, obstacle string) reconcile.Outcome {
	status := *f.work.Status.DeepCopy()
	setAt(&status.Conditions, deletingCondition(left, obstacle), f.work.Generation, f.now)
	told := meta.FindStatusCondition(f.work.Status.Conditions, workv1.WorkDeleting)
	last := r.memory.of(f.holder).work
	if next := last.at.Add(tellPause); told != nil && last.uid == f.work.UID && f.now.Before(next) {
		return reconcile.DoneUntil(next)
	}
	return r.publishStatus(ctx, f, status)
}

// drainApplied takes down an AppliedManifestWork that somebody deleted although its work lives. The next pass makes
// everything anew.
func (r *Reconciler) drainApplied(ctx context.Context, f *facts) reconcile.Outcome {
	outcome, left := r.takeDown(ctx, f)
	r.report(f, f.work.ObjectMeta, &left)
	if f.applied == nil {
		return outcome.And(reconcile.Waiting(f.now.Add(staleDelay)))
	}
	return outcome
}
