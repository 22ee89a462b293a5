package work

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// Name is the name of the controller.
const Name = "hub.work"

// pageSize is the number of works of one page where the API server cannot stream the list; a work may have 500 KiB.
const pageSize = 100

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// finishedWorks keeps the works that are to be deleted, and nothing of all others.
type finishedWorks = watch.Store[*workv1.ManifestWork, finished]

// SetupWithManager registers the reconciler and its watch.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		Watches(&workv1.ManifestWork{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isFinished))).
		WatchesRawSource(source.Func(r.start)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// isFinished reports whether a work of an add-on is to be deleted.
func isFinished(o client.Object) bool {
	work, isWork := o.(*workv1.ManifestWork)
	return isWork && finishedOf(work) != nil
}

// start watches the works that belong to no add-on until the context ends.
func (r *Reconciler) start(ctx context.Context, queue queue) error {
	selector := labels.NewSelector()
	for _, label := range []string{LabelReplicaSet, names.LabelAddonName} {
		without, err := labels.NewRequirement(label, selection.DoesNotExist, nil)
		if err != nil {
			return fmt.Errorf("building the selector of ManifestWorks: %w", err)
		}
		selector = selector.Add(*without)
	}
	newList := func() client.ObjectList { return &workv1.ManifestWorkList{} }
	source := watch.FromClient(r.Works, metav1.NamespaceAll, newList)
	source.LabelSelector, source.PageSize = selector.String(), pageSize
	r.keep(queue)
	one := watch.Watch[*workv1.ManifestWork]{
		Name: Name, Description: "manifestworks", Source: source, Handler: &r.finished, Trim: trim,
	}
	go one.Run(ctx)
	return nil
}

// keep prepares the store, which enqueues every work that is to be deleted.
func (r *Reconciler) keep(queue queue) {
	r.finished.Keep = func(_ context.Context, work *workv1.ManifestWork) (finished, bool) {
		if f := finishedOf(work); f != nil {
			return *f, true
		}
		return finished{}, false
	}
	r.finished.Changed = func(keys []types.NamespacedName) {
		for _, key := range keys {
			queue.Add(ctrl.Request{NamespacedName: key})
		}
	}
}

// trim drops from a work what does not decide whether it is deleted.
func trim(work *workv1.ManifestWork) {
	work.Annotations, work.OwnerReferences, work.Finalizers = nil, nil, nil
	work.Spec = workv1.ManifestWorkSpec{DeleteOption: work.Spec.DeleteOption}
	work.Status.ResourceStatus = workv1.ManifestResourceStatus{}
}
