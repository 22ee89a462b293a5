package work

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// evictor looks after the AppliedManifestWorks of this agent that have no work, because the work vanished from the hub
// without being deleted in order or because the hub changed. After a grace it deletes them with their objects.
type evictor struct{ *Reconciler }

// stage is what is to be done about one AppliedManifestWork.
type stage int

const (
	// stageForeign: it is not ours; nothing is done, ever.
	stageForeign stage = iota
	// stageManaged: it has its work, whose reconciler does everything but clear an eviction that had begun.
	stageManaged
	// stageDrain: it is being deleted and its objects must go first.
	stageDrain
	// stageKept: eviction is off.
	stageKept
	// stageStart: its grace begins.
	stageStart
	// stageWait: its grace runs.
	stageWait
	// stageEvict: its grace is over.
	stageEvict
)

// stageOf decides about an AppliedManifestWork (work contract, section 4.5); managed tells that its work exists and is
// of the present hub, expiry is when its grace ends.
func (e *evictor) stageOf(applied *workv1.AppliedManifestWork, managed bool, now time.Time) (stage, time.Time) {
	start := applied.Status.EvictionStartTime
	switch {
	case applied.Spec.AgentID != e.AgentID:
		return stageForeign, time.Time{}
	case managed:
		return stageManaged, time.Time{}
	case !applied.DeletionTimestamp.IsZero():
		return stageDrain, time.Time{}
	case e.EvictionGrace >= EvictionDisabled:
		return stageKept, time.Time{}
	case start == nil:
		return stageStart, now.Add(e.EvictionGrace)
	}
	if expiry := start.Add(e.EvictionGrace); now.Before(expiry) {
		return stageWait, expiry
	}
	return stageEvict, time.Time{}
}

// Reconcile looks after one AppliedManifestWork.
func (e *evictor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &facts{now: e.Clock.Now(), holder: holder{applied: true, name: req.Name}}
	var err error
	if f.applied, err = readApplied(ctx, e.Spoke.GetClient(), req.Name); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	e.checkEvictionLag(f)
	if f.applied == nil {
		e.forget(f)
		return reconcile.Done().Settle(f.now)
	}
	if f.stale {
		return reconcile.Waiting(f.now.Add(staleDelay)).Settle(f.now)
	}
	managed, err := e.hasWork(ctx, e.Hub.GetClient(), f.applied)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return e.proceed(ctx, f, managed).Settle(f.now)
}

// checkEvictionLag compares the cache with the last writes of the evictor.
func (e *evictor) checkEvictionLag(f *facts) {
	known := e.memory.of(f.holder).applied
	if f.applied == nil {
		return
	}
	if known.gone && known.uid == f.applied.UID {
		f.applied = nil
		return
	}
	f.stale = known.lag(f.applied.UID, f.applied.ResourceVersion, !f.applied.DeletionTimestamp.IsZero(), f.now)
}

// hasWork tells whether the AppliedManifestWork has its work on the present hub.
func (e *evictor) hasWork(ctx context.Context, hub client.Reader, applied *workv1.AppliedManifestWork) (bool, error) {
	if applied.Name != appliedName(e.HubHash, applied.Spec.ManifestWorkName) {
		return false, nil
	}
	work := &workv1.ManifestWork{}
	key := types.NamespacedName{Namespace: e.Cluster, Name: applied.Spec.ManifestWorkName}
	err := hub.Get(ctx, key, work)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the ManifestWork %s: %w", key.Name, err)
	}
	return true, nil
}

// proceed does what the stage wants.
func (e *evictor) proceed(ctx context.Context, f *facts, managed bool) reconcile.Outcome {
	stage, wake := e.stageOf(f.applied, managed, f.now)
	switch stage {
	case stageForeign:
		return reconcile.Done()
	case stageManaged, stageKept:
		e.ledger.claim(f.holder, nil, nil)
		return reconcile.FromError(e.markEviction(ctx, f, nil))
	case stageDrain:
		outcome, _ := e.takeDown(ctx, f)
		return outcome
	case stageStart:
		start := metav1.NewTime(f.now)
		return reconcile.FromError(e.markEviction(ctx, f, &start)).And(reconcile.Waiting(wake))
	case stageWait:
		return reconcile.Waiting(wake)
	case stageEvict:
		return e.evict(ctx, f)
	}
	return reconcile.Done()
}

// markEviction writes when the grace began, or that it does not run.
func (e *evictor) markEviction(ctx context.Context, f *facts, start *metav1.Time) error {
	if f.applied.Status.EvictionStartTime.Equal(start) {
		return nil
	}
	after := f.applied.DeepCopy()
	after.Status.EvictionStartTime = start
	if _, err := reconcile.PatchStatus(ctx, e.Spoke.GetClient(), f.applied, after); err != nil {
		return fmt.Errorf("marking the eviction: %w", err)
	}
	e.wroteApplied(f, after)
	return nil
}

// evict deletes the AppliedManifestWork with its objects, after the hub itself has said that the work is gone: a cache
// that is behind must not cost a workload.
func (e *evictor) evict(ctx context.Context, f *facts) reconcile.Outcome {
	managed, err := e.hasWork(ctx, e.Hub.GetAPIReader(), f.applied)
	if err != nil {
		return reconcile.FromError(err)
	}
	if managed {
		return reconcile.FromError(e.markEviction(ctx, f, nil))
	}
	outcome, _ := e.takeDown(ctx, f)
	return outcome
}
