package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons of the condition about works that are missing on the hub.
const (
	reasonWorksPresent = "WorksPresent"
	reasonWorksMissing = "WorksMissing"
	reasonWorksOlder   = "WorksOlder"
)

// lookDelay is how long a look at all works that are missing waits for further ones.
const lookDelay = time.Second

// holds reports whether the objects of works are held that are missing on the hub, or there in an older content.
func (r *Reconciler) holds() bool { return r.Missing == missing.Hold }

// observeMissing returns the works of this agent and hub that the hub does not have, as the caches show them, and the
// ManagedCluster; nil when there is none.
func (r *Reconciler) observeMissing(ctx context.Context, now time.Time,
) (missing.Facts, *clusterv1.ManagedCluster, error) {
	f := missing.Facts{}
	var works workv1.ManifestWorkList
	if err := r.Hub.GetCache().List(ctx, &works, client.InNamespace(r.Cluster), client.UnsafeDisableDeepCopy,
		decode.Metadata); err != nil {
		return f, nil, fmt.Errorf("listing the works of the hub: %w", err)
	}
	there := make(map[string]bool, len(works.Items))
	for i := range works.Items {
		there[works.Items[i].Name] = true
	}
	var all workv1.AppliedManifestWorkList
	if err := r.Spoke.GetCache().List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return f, nil, fmt.Errorf("listing the AppliedManifestWorks: %w", err)
	}
	for i := range all.Items {
		applied := &all.Items[i]
		name, ours := r.owns(applied)
		if !ours || !applied.DeletionTimestamp.IsZero() {
			continue
		}
		f.Known++
		switch {
		case !there[name] && r.EvictionGrace >= EvictionDisabled: // Its objects stay whatever happens.
		case !there[name]:
			f.Works = append(f.Works, missing.Work{
				Name: name, UID: applied.UID, Since: since(applied, now),
				Held: inventory.HeldSince(applied), Confirmed: inventory.Confirmed(applied),
			})
		case inventory.IsOlder(applied):
			older := missing.Work{Name: name, UID: applied.UID, Older: true, Held: inventory.OlderSince(applied)}
			if !inventory.IsHeld(applied) { // Otherwise the loss of all of it was confirmed, which is over.
				older.Confirmed = inventory.Confirmed(applied)
			}
			f.Older = append(f.Older, older)
		}
	}
	cluster := &clusterv1.ManagedCluster{}
	switch err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Cluster}, cluster); {
	case apierrors.IsNotFound(err):
		return f, nil, nil
	case err != nil:
		return f, nil, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
	}
	f.Leaving = !cluster.DeletionTimestamp.IsZero()
	f.Confirmation = cluster.Annotations[names.AnnotationConfirmEviction]
	return f, cluster, nil
}

// owns returns the work of an AppliedManifestWork, false when that is not of this agent and of the present hub.
func (r *Reconciler) owns(applied *workv1.AppliedManifestWork) (work string, ours bool) {
	work, ours = r.inventory.Work(applied)
	return work, ours && applied.Spec.AgentID == r.AgentID
}

// verdict is what happens to the objects of a work that is missing; confirmed is the name of the list of works that a
// person confirmed.
type verdict struct {
	fate      missing.Fate
	confirmed string
}

// judge decides what happens to the objects of an AppliedManifestWork whose work is missing.
func (e *evictor) judge(ctx context.Context, applied *workv1.AppliedManifestWork, now time.Time) (verdict, error) {
	work, ours := e.owns(applied)
	if !e.holds() || !ours || !applied.DeletionTimestamp.IsZero() {
		return verdict{fate: missing.Waits}, nil
	}
	f, _, err := e.observeMissing(ctx, now)
	if err != nil {
		return verdict{fate: missing.Held}, err
	}
	return verdict{missing.Decide(f)[work], f.Confirmation}, nil
}

// look looks at all works that are missing, reports them, and wakes those whose fate changed.
func (e *evictor) look(ctx context.Context) reconcile.Outcome {
	now := e.Clock.Now()
	f, cluster, err := e.observeMissing(ctx, now)
	if err != nil {
		return reconcile.FromError(err)
	}
	fates := missing.Decide(f)
	for _, w := range f.Works {
		// One that is held is not held any more when the cluster leaves the hub: its grace period begins.
		if fate := fates[w.Name]; fate > missing.Held || (fate == missing.Held) != (w.Held != "") {
			e.queues.applied.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: e.inventory.Name(w.Name)}})
		}
	}
	for _, w := range f.Older {
		if fates[w.Name] > missing.Held {
			e.queues.works.Add(e.request(w.Name))
		}
	}
	text := missing.Report(f, fates)
	if text != e.told {
		e.told = text
		log.FromContext(ctx).Info("works are missing on the hub, or older than what was applied", "report", text,
			"held", text != "")
		if e.OnMissing != nil {
			e.OnMissing(text)
		}
	}
	lost := slices.ContainsFunc(f.Works, func(w missing.Work) bool { return fates[w.Name] == missing.Held })
	return reconcile.FromError(e.publishMissing(ctx, cluster, presence(text, lost), now))
}

// presence is the condition of the ManagedCluster about works that are missing or older, as a report says; lost means
// that there are missing ones.
func presence(text string, lost bool) metav1.Condition {
	condition := metav1.Condition{
		Type: names.ConditionWorksPresent, Status: metav1.ConditionFalse, Reason: reasonWorksOlder, Message: text,
	}
	switch {
	case text == "":
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonWorksPresent
		condition.Message = "no objects are held of works that the hub does not have, or has in an older content"
	case lost:
		condition.Reason = reasonWorksMissing
	}
	return condition
}

// publishMissing writes the condition of the ManagedCluster about works that are missing. It is there only once there
// was something to say.
func (e *evictor) publishMissing(
	ctx context.Context, cluster *clusterv1.ManagedCluster, condition metav1.Condition, now time.Time,
) error {
	if cluster == nil || (condition.Status == metav1.ConditionTrue &&
		meta.FindStatusCondition(cluster.Status.Conditions, condition.Type) == nil) {
		return nil
	}
	after := cluster.DeepCopy()
	reconcile.SetCondition(&after.Status.Conditions, condition, now)
	_, err := reconcile.PatchStatus(ctx, e.Hub.GetClient(), cluster, after)
	return err
}

// since returns when the work of an AppliedManifestWork was first found missing.
func since(applied *workv1.AppliedManifestWork, now time.Time) time.Time {
	if at := inventory.MissingSince(applied); !at.IsZero() {
		return at
	}
	return graceStart(now).Time
}

// hold marks an AppliedManifestWork whose objects stay until its work is back or a person confirms its eviction. The
// mark comes first: what is written of a hold that is cut short is not a grace period that runs.
func (e *evictor) hold(ctx context.Context, f *facts) error {
	applied, err := e.inventory.Hold(ctx, f.applied, since(f.applied, f.now))
	if err != nil {
		return err
	}
	if applied != f.applied {
		e.wroteApplied(f, applied)
		e.recordEvent(f, eventHeld, f.now)
	}
	if applied, err = e.inventory.SetEvictionStart(ctx, f.applied, nil); err != nil || applied == f.applied {
		return err
	}
	e.wroteApplied(f, applied)
	return nil
}

// confirm records that a person confirmed that the objects of the works of a list go, of which this is one.
func (r *Reconciler) confirm(ctx context.Context, f *facts, list string) error {
	applied, err := r.inventory.Confirm(ctx, f.applied, list)
	if err != nil || applied == f.applied {
		return err
	}
	r.wroteApplied(f, applied)
	return nil
}

// letGo takes the marks of an eviction off an AppliedManifestWork.
func (e *evictor) letGo(ctx context.Context, f *facts) error {
	if err := e.markEviction(ctx, f, nil); err != nil {
		return err
	}
	applied, err := e.inventory.Hold(ctx, f.applied, time.Time{})
	e.wroteApplied(f, applied)
	return err
}

// missingSources request a look at all works that are missing when one may come or go, and when the ManagedCluster
// changes.
func (e *evictor) missingSources() []source.Source {
	if !e.holds() {
		return nil
	}
	return []source.Source{
		source.Kind(e.Hub.GetCache(), &workv1.ManifestWork{}, soon[*workv1.ManifestWork](),
			predicate.TypedFuncs[*workv1.ManifestWork]{
				UpdateFunc: func(event.TypedUpdateEvent[*workv1.ManifestWork]) bool { return false },
			}),
		source.Kind(e.Spoke.GetCache(), &workv1.AppliedManifestWork{}, soon[*workv1.AppliedManifestWork](),
			predicate.TypedFuncs[*workv1.AppliedManifestWork]{
				UpdateFunc: func(u event.TypedUpdateEvent[*workv1.AppliedManifestWork]) bool {
					return evictionChanged(u.ObjectOld, u.ObjectNew)
				},
			}),
		source.Kind(e.Hub.GetCache(), &clusterv1.ManagedCluster{}, soon[*clusterv1.ManagedCluster]()),
	}
}

// evictionChanged reports whether a change of an AppliedManifestWork concerns its eviction.
func evictionChanged(before, after *workv1.AppliedManifestWork) bool {
	return appliedChanged(before, after) || inventory.IsHeld(before) != inventory.IsHeld(after) ||
		inventory.Confirmed(before) != inventory.Confirmed(after) ||
		inventory.OlderSince(before) != inventory.OlderSince(after) ||
		!before.Status.EvictionStartTime.Equal(after.Status.EvictionStartTime)
}

// soon requests one look at all works that are missing for all events within lookDelay. Its request has no name.
func soon[T client.Object]() handler.TypedEventHandler[T, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[T, ctrl.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(ctrl.Request{}, lookDelay) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(ctrl.Request{}, lookDelay) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(ctrl.Request{}, lookDelay) },
	}
}

// behindPause is when a pass looks again at a work of which the cache has an earlier generation than the hub.
const behindPause = time.Second

// isBehind reports whether the cache has an earlier generation of a work than was applied although the hub has a later
// one: after a restart, an API server whose own cache lags may list works as they were. A hub that does not answer says
// nothing.
func (r *Reconciler) isBehind(ctx context.Context, f *facts) bool {
	if f.applied == nil || !inventory.WentBack(f.applied, f.work) {
		return false
	}
	live, err := r.liveWork(ctx, f.work.Name)
	return err == nil && live != nil && live.UID == f.work.UID && live.Generation > f.work.Generation
}

// goBack records that a work went back to an earlier generation, before anything of it is applied. What the later one
// added is held from then on, unless the work has it, too.
func (r *Reconciler) goBack(ctx context.Context, f *facts) error {
	if f.applied == nil || !inventory.WentBack(f.applied, f.work) {
		return nil
	}
	var since time.Time
	if r.holds() && !inventory.Whole(f.manifests, inventory.Tracked(f.applied)) {
		since = graceStart(f.now).Time
	}
	before := f.applied
	applied, err := r.inventory.GoBack(ctx, f.applied, f.work, since)
	if err != nil {
		return err
	}
	r.wroteApplied(f, applied)
	log.FromContext(ctx).Info("the work is older than what was applied, the hub may have been restored",
		"applied", before.Annotations[inventory.AnnotationGeneration], "generation", f.work.Generation,
		"held", !since.IsZero())
	if !since.IsZero() {
		r.events.record(f.work.ObjectMeta, olderEvent())
	}
	return nil
}

// keepsNewer reports whether the objects stay that a work does not have since it went back to an earlier generation. It
// takes the mark off when the work has them all again, or a person confirmed their deletion.
func (r *Reconciler) keepsNewer(ctx context.Context, f *facts) (bool, error) {
	if !inventory.IsOlder(f.applied) {
		return false, nil
	}
	if r.holds() && !inventory.Whole(f.manifests, inventory.Tracked(f.applied)) {
		lost, _, err := r.observeMissing(ctx, f.now)
		if err != nil {
			return true, err
		}
		switch missing.Decide(lost)[f.work.Name] {
		case missing.Evicted:
		case missing.Confirmed:
			return true, r.confirm(ctx, f, lost.Confirmation)
		case missing.Waits, missing.Held:
			return true, nil
		}
	}
	applied, err := r.inventory.Release(ctx, f.applied)
	if err != nil {
		return true, err
	}
	r.wroteApplied(f, applied)
	return false, nil
}
