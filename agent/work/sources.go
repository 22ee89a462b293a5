package work

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
)

// worksSource reconciles a work when it is created, deleted, or changed in anything but its annotations and our own
// writes.
func (r *Reconciler) worksSource() source.SyncingSource {
	return source.Kind(r.Hub.GetCache(), &workv1.ManifestWork{},
		&handler.TypedEnqueueRequestForObject[*workv1.ManifestWork]{},
		predicate.TypedFuncs[*workv1.ManifestWork]{
			CreateFunc: func(e event.TypedCreateEvent[*workv1.ManifestWork]) bool {
				return e.Object.Namespace == r.Cluster
			},
			UpdateFunc: func(e event.TypedUpdateEvent[*workv1.ManifestWork]) bool {
				return e.ObjectNew.Namespace == r.Cluster &&
					(workChanged(e.ObjectOld, e.ObjectNew) || r.workTouched(e.ObjectOld, e.ObjectNew))
			},
			DeleteFunc: func(e event.TypedDeleteEvent[*workv1.ManifestWork]) bool {
				return e.Object.Namespace == r.Cluster
			},
		})
}

// workChanged reports whether a change of a work concerns the agent. Our own finalizer does not.
func workChanged(before, after *workv1.ManifestWork) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) ||
		lost(before.Finalizers, after.Finalizers, names.FinalizerManifestWork)
}

// lost reports whether a name was in the list before and is not after.
func lost(before, after []string, name string) bool {
	return slices.Contains(before, name) && !slices.Contains(after, name)
}

// appliedSource reconciles the work of an AppliedManifestWork of this agent and hub when another client changes it.
func (r *Reconciler) appliedSource() source.Source {
	return source.Kind(r.Spoke.GetCache(), &workv1.AppliedManifestWork{},
		handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, applied *workv1.AppliedManifestWork) []ctrl.Request {
				work, ours := r.inventory.Work(applied)
				if !ours {
					return nil
				}
				return []ctrl.Request{r.request(work)}
			}),
		predicate.TypedFuncs[*workv1.AppliedManifestWork]{
			CreateFunc: func(event.TypedCreateEvent[*workv1.AppliedManifestWork]) bool { return false },
			UpdateFunc: func(e event.TypedUpdateEvent[*workv1.AppliedManifestWork]) bool {
				return appliedChanged(e.ObjectOld, e.ObjectNew) || r.appliedTouched(e.ObjectOld, e.ObjectNew)
			},
		})
}

// appliedChanged reports whether a change of an AppliedManifestWork is more than the list that we keep there.
func appliedChanged(before, after *workv1.AppliedManifestWork) bool {
	return before.UID != after.UID || before.Spec != after.Spec ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		lost(before.Finalizers, after.Finalizers, names.FinalizerAppliedManifestWork)
}

// start receives the queue of the AppliedManifestWorks without work.
func (e *evictor) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	e.queues.applied = queue
	return nil
}

// worksSource reconciles the AppliedManifestWork of a work that is created or deleted.
func (e *evictor) worksSource() source.Source {
	return source.Kind(e.Hub.GetCache(), &workv1.ManifestWork{},
		handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, work *workv1.ManifestWork) []ctrl.Request {
				if work.Namespace != e.Cluster {
					return nil
				}
				name := e.inventory.Name(work.Name)
				return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: name}}}
			}),
		predicate.TypedFuncs[*workv1.ManifestWork]{
			UpdateFunc: func(event.TypedUpdateEvent[*workv1.ManifestWork]) bool { return false },
		})
}

// appliedSource reconciles an AppliedManifestWork of this agent, whatever its hub.
func (e *evictor) appliedSource() source.Source {
	return source.Kind(e.Spoke.GetCache(), &workv1.AppliedManifestWork{},
		&handler.TypedEnqueueRequestForObject[*workv1.AppliedManifestWork]{},
		predicate.TypedFuncs[*workv1.AppliedManifestWork]{
			UpdateFunc: func(u event.TypedUpdateEvent[*workv1.AppliedManifestWork]) bool {
				return evictionChanged(u.ObjectOld, u.ObjectNew)
			},
		})
}

// workTouched reports whether another client wrote the status of a work, which is then put right, or a status may wait
// for the event. An event of our own write that comes before the answer to it counts, too, and costs a pass without a
// request.
func (r *Reconciler) workTouched(before, after *workv1.ManifestWork) bool {
	known := r.notes.of(watch.Owner{Name: after.Name}).work
	awaited := known.unseen && known.unseenIn(before) && !known.unseenIn(after)
	return awaited || after.ResourceVersion != known.version && !equality.Semantic.DeepEqual(before.Status, after.Status)
}

// appliedTouched reports the same of the list of an AppliedManifestWork: without an entry nobody would delete its
// object.
func (r *Reconciler) appliedTouched(before, after *workv1.AppliedManifestWork) bool {
	work, ours := r.inventory.Work(after)
	return ours && after.ResourceVersion != r.notes.of(watch.Owner{Name: work}).applied.version &&
		!slices.Equal(before.Status.AppliedResources, after.Status.AppliedResources)
}
