package work

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// evictor cares for the AppliedManifestWorks of this agent that have no work, because the work vanished from the hub
// without having been deleted on the spoke, or because the hub changed. After a grace period it deletes them with their
// objects, unless so many works are missing that a person has to confirm it (lost.go).
type evictor struct {
	*Reconciler
	// told is the last report about works that are missing; only the look at all of them uses it.
	told string
}

// stage says what is to be done about one AppliedManifestWork.
type stage int

const (
	// stageForeign: it is not ours; nothing is done, ever.
	stageForeign stage = iota
	// stageManaged: it has its work, whose reconciler does everything but clear an eviction that had begun.
	stageManaged
	// stageDelete: it is being deleted, and its objects go first.
	stageDelete
	// stageKept: eviction is off.
	stageKept
	// stageHold: its objects stay until its work is back or a person confirms their deletion.
	stageHold
	// stageConfirm: a person confirmed their deletion, which is recorded.
	stageConfirm
	// stageStart: its grace begins.
	stageStart
	// stageWait: its grace runs.
	stageWait
	// stageEvict: its grace is over, or it is recorded that a person confirmed its eviction.
	stageEvict
)

// stageOf decides about an AppliedManifestWork (docs/reference/work.md, "Eviction"); managed means that its work exists
// and is of the present hub, fate what happens to it where it does not; expiry is when its grace ends.
func (e *evictor) stageOf(applied *workv1.AppliedManifestWork, managed bool, fate missing.Fate, now time.Time,
) (_ stage, expiry time.Time) {
	start := applied.Status.EvictionStartTime
	switch {
	case applied.Spec.AgentID != e.AgentID:
		return stageForeign, time.Time{}
	case managed:
		return stageManaged, time.Time{}
	case !applied.DeletionTimestamp.IsZero():
		return stageDelete, time.Time{}
	case e.EvictionGrace >= EvictionDisabled:
		return stageKept, time.Time{}
	case fate == missing.Held:
		return stageHold, time.Time{}
	case fate == missing.Confirmed:
		return stageConfirm, time.Time{}
	case fate == missing.Evicted:
		return stageEvict, time.Time{}
	case start == nil:
		return stageStart, graceStart(now).Add(e.EvictionGrace)
	}
	if expiry := start.Add(e.EvictionGrace); now.Before(expiry) {
		return stageWait, expiry
	}
	return stageEvict, time.Time{}
}

// Reconcile cares for one AppliedManifestWork.
func (e *evictor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		return e.look(ctx).Settle(e.Clock.Now())
	}
	f := &facts{now: e.Clock.Now(), owner: watch.Owner{Applied: true, Name: req.Name}, room: e.room.Pass()}
	if err := e.observe(ctx, f, req.Name); err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	switch {
	case f.applied == nil:
		return reconcile.Done().Settle(f.now)
	case f.stale:
		return reconcile.Waiting(f.now.Add(staleDelay)).Settle(f.now)
	}
	managed, verdict, err := e.fateOf(ctx, f)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	return e.proceed(ctx, f, managed, verdict).SettleIn(e.queues.applied, req, f.now)
}

// observe reads the AppliedManifestWork, and whether the cache is behind our own writes of it. It leaves nil where
// there is none.
func (e *evictor) observe(ctx context.Context, f *facts, name string) (err error) {
	if f.applied, err = inventory.Read(ctx, e.inventory.Client, name); err != nil {
		return err
	}
	if f.applied == nil {
		e.forget(f)
		return nil
	}
	e.checkEvictionLag(f)
	return nil
}

// fateOf reports whether the AppliedManifestWork has its work and, if not, what happens to its objects.
func (e *evictor) fateOf(ctx context.Context, f *facts) (managed bool, v verdict, err error) {
	v.fate = missing.Waits
	if managed, err = e.hasWork(ctx, f.applied, false); managed || err != nil {
		return managed, v, err
	}
	v, err = e.judge(ctx, f.applied, f.now)
	return false, v, err
}

// checkEvictionLag compares the cache with the last writes of the evictor, and of the pass that deleted the work.
func (e *evictor) checkEvictionLag(f *facts) {
	known := e.notes.of(f.owner).applied
	if known.gone && known.uid == f.applied.UID {
		f.applied = nil
		return
	}
	f.stale = known.lag(f.applied.UID, f.applied.ResourceVersion, !f.applied.DeletionTimestamp.IsZero(), f.now)
}

// hasWork reports whether the AppliedManifestWork has its work on the present hub; live asks the hub itself.
func (e *evictor) hasWork(ctx context.Context, applied *workv1.AppliedManifestWork, live bool) (bool, error) {
	name, ours := e.inventory.Work(applied)
	switch {
	case !ours:
		return false, nil
	case live:
		work, err := e.liveWork(ctx, name)
		return work != nil, err
	}
	return e.onHub(ctx, e.Hub.GetClient(), name, &workv1.ManifestWork{})
}

// proceed does what the stage requires.
func (e *evictor) proceed(ctx context.Context, f *facts, managed bool, verdict verdict) reconcile.Outcome {
	stage, wake := e.stageOf(f.applied, managed, verdict.fate, f.now)
	switch stage {
	case stageForeign:
		return reconcile.Done()
	case stageManaged, stageKept:
		e.store.Forget(f.owner)
		return reconcile.FromError(e.letGo(ctx, f))
	case stageHold:
		return reconcile.FromError(e.hold(ctx, f))
	case stageConfirm:
		return reconcile.FromError(e.confirm(ctx, f, verdict.confirmed))
	case stageDelete:
		return e.finish(ctx, f)
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

// markEviction writes when the grace period began; nil means that it does not run.
func (e *evictor) markEviction(ctx context.Context, f *facts, start *metav1.Time) error {
	applied, err := e.inventory.SetEvictionStart(ctx, f.applied, start)
	if err != nil || applied == f.applied {
		return err
	}
	e.wroteApplied(f, applied)
	switch {
	case start != nil:
		e.recordEvent(f, eventEviction, start.Add(e.EvictionGrace))
	case e.EvictionGrace < EvictionDisabled:
		e.recordEvent(f, eventStayed, f.now)
	}
	return nil
}

// recordEvent counts what happens to the AppliedManifestWork and records an Event, if it is of this hub.
func (e *evictor) recordEvent(f *facts, reason string, at time.Time) {
	e.counts.eviction(map[string]string{
		eventEviction: "started", eventHeld: "held", eventStayed: "stopped", eventEvicted: "done",
	}[reason])
	if _, ours := e.inventory.Work(f.applied); ours {
		e.events.record(e.lostWork(f.applied), evictionEvent(reason, at))
	}
}

// lostWork names the work of an AppliedManifestWork, which is not on the hub.
func (e *evictor) lostWork(applied *workv1.AppliedManifestWork) metav1.ObjectMeta {
	work, ours := e.inventory.Work(applied)
	if !ours {
		work = applied.Spec.ManifestWorkName
	}
	return metav1.ObjectMeta{Namespace: e.Cluster, Name: work}
}

// finish deletes an AppliedManifestWork without a work, and reports the objects that do not go.
func (e *evictor) finish(ctx context.Context, f *facts) reconcile.Outcome {
	work := e.lostWork(f.applied)
	outcome, left := e.deleteObjects(ctx, f)
	e.reportBlocked(f, work, &left)
	return outcome
}

// evict deletes the AppliedManifestWork with its objects. An empty hub costs workloads only when it is surely empty:
// the grace began after the hub had listed its works, for no controller starts before its caches are filled, and it
// ends only when the hub itself, asked again under the rights that the agent has there, says that the work does not
// exist. A hub that does not answer, or does not know the agent, takes nothing down.
func (e *evictor) evict(ctx context.Context, f *facts) reconcile.Outcome {
	managed, err := e.hasWork(ctx, f.applied, true)
	if err != nil {
		return reconcile.FromError(err)
	}
	if managed {
		return reconcile.FromError(e.letGo(ctx, f))
	}
	was := *f
	outcome := e.finish(ctx, f)
	if f.applied == nil || !f.applied.DeletionTimestamp.IsZero() {
		e.recordEvent(&was, eventEvicted, f.now)
	}
	return outcome
}
