package work

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		return stageStart, graceStart(now).Add(e.EvictionGrace)
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
	if f.applied == nil {
		e.forget(f)
		return reconcile.Done().Settle(f.now)
	}
	e.checkEvictionLag(f)
	if f.applied == nil {
		return reconcile.Done().Settle(f.now) // The cache will say that it went, too.
	}
	if f.stale {
		return reconcile.Waiting(f.now.Add(staleDelay)).Settle(f.now)
	}
	managed, err := e.hasWork(ctx, e.Hub.GetClient(), f.applied)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return e.proceed(ctx, f, managed).SettleIn(e.queues.applied, req, f.now)
}

// checkEvictionLag compares the cache with the last writes of the evictor, and of who took down the work.
func (e *evictor) checkEvictionLag(f *facts) {
	known := e.memory.of(f.holder).applied
	if known.gone && known.uid == f.applied.UID {
		f.applied = nil
		return
	}
	f.stale = known.lag(f.applied.UID, f.applied.ResourceVersion, !f.applied.DeletionTimestamp.IsZero(), f.now)
}

// hasWork reports whether the AppliedManifestWork has its work on the present hub.
func (e *evictor) hasWork(ctx context.Context, hub client.Reader, applied *workv1.AppliedManifestWork) (bool, error) {
	if applied.Name != appliedName(e.HubHash, applied.Spec.ManifestWorkName) {
		return false, nil
	}
	return e.onHub(ctx, hub, applied.Spec.ManifestWorkName)
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
		return e.leave(ctx, f)
	case stageStart:
		start := graceStart(f.now)
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
	if err := reconcile.PutStatus(ctx, e.Spoke.GetClient(), after); err != nil {
		return fmt.Errorf("marking the eviction: %w", err)
	}
	e.wroteApplied(f, after)
	switch {
	case start != nil:
		e.tell(f, eventEviction, start.Add(e.EvictionGrace))
	case e.EvictionGrace < EvictionDisabled:
		e.tell(f, eventStayed, f.now)
	}
	return nil
}

// graceStart is when a grace begins that is told in whole seconds: rounded up, so that it is never cut short.
func graceStart(now time.Time) metav1.Time {
	return metav1.NewTime(now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
}

// tell counts what happens to the AppliedManifestWork and tells the hub, if it is of that.
func (e *evictor) tell(f *facts, reason string, at time.Time) {
	e.counts.eviction(map[string]string{eventEviction: "started", eventStayed: "stopped", eventEvicted: "done"}[reason])
	if f.applied.Name == appliedName(e.HubHash, f.applied.Spec.ManifestWorkName) {
		e.herald.tell(e.lostWork(f.applied), evictionTidings(reason, at))
	}
}

// lostWork names the work of an AppliedManifestWork, which is not on the hub.
func (e *evictor) lostWork(applied *workv1.AppliedManifestWork) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.Cluster, Name: applied.Spec.ManifestWorkName}
}

// leave takes down an AppliedManifestWork without work, and reports what does not go.
func (e *evictor) leave(ctx context.Context, f *facts) reconcile.Outcome {
	work := e.lostWork(f.applied)
	outcome, left := e.takeDown(ctx, f)
	e.report(f, work, &left)
	return outcome
}

// evict deletes the AppliedManifestWork with its objects. An empty hub costs workloads only when it is surely empty:
// the grace began after the hub had listed its works, for no controller starts before its caches are filled, and it
// ends only when the hub itself, asked again under the rights that the agent has there, says that the work does not
// exist. A hub that does not answer, or does not know the agent, takes nothing down.
func (e *evictor) evict(ctx context.Context, f *facts) reconcile.Outcome {
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	managed, err := e.hasWork(within, e.Hub.GetAPIReader(), f.applied)
	if err != nil {
		return reconcile.FromError(err)
	}
	if managed {
		return reconcile.FromError(e.markEviction(ctx, f, nil))
	}
	was := *f
	outcome := e.leave(ctx, f)
	if f.applied == nil || !f.applied.DeletionTimestamp.IsZero() {
		e.tell(&was, eventEvicted, f.now)
	}
	return outcome
}
