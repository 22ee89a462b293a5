package work

import (
	"context"
	"slices"
	"time"

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

// verdict says what happens to the objects of a work that is missing; confirmed is the name of the list of works that a
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
