package work

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.work"

// pageSize is the page size of a list where the API server cannot stream it; a work may have 500 KiB.
const pageSize = 100

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SetupWithManager adds the controller and its watch to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		WatchesRawSource(source.Func(r.start)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// start watches works until the context ends.
func (r *Reconciler) start(ctx context.Context, wake queue) error {
	replica, err := labels.NewRequirement(LabelReplicaSet, selection.DoesNotExist, nil)
	if err != nil {
		return fmt.Errorf("building the selector of ManifestWorks: %w", err)
	}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*replica)}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &workv1.ManifestWorkList{}
			return list, r.Works.List(ctx, list, &client.ListOptions{Raw: &options}, selector)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return r.Works.Watch(ctx, &workv1.ManifestWorkList{}, &client.ListOptions{Raw: &options}, selector)
		},
	}
	r.dueWorks.reset(map[types.NamespacedName]finished{})
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lists, r.Works),
		&workv1.ManifestWork{}, &store{dueWorks: &r.dueWorks, wake: wake},
		cache.ReflectorOptions{Name: Name, TypeDescription: "manifestworks"})
	reflector.WatchListPageSize = pageSize
	go reflector.RunWithContext(ctx)
	return nil
}

// store is the store of the watch: it keeps the works that are to be deleted and enqueues them.
type store struct {
	dueWorks *dueWorks
	wake     queue
}

var _ cache.TransformingStore = (*store)(nil)

// Add records a work.
func (s *store) Add(obj any) error { return s.set(obj, false) }

// Update records a work.
func (s *store) Update(obj any) error { return s.set(obj, false) }

// Delete records the deletion of a work.
func (s *store) Delete(obj any) error { return s.set(obj, true) }

// Resync does nothing.
func (s *store) Resync() error { return nil }

// Replace records all works.
func (s *store) Replace(items []any, _ string) error {
	now := map[types.NamespacedName]finished{}
	for _, item := range items {
		work, ok := item.(*workv1.ManifestWork)
		if !ok {
			return fmt.Errorf("watching ManifestWorks: got a %T", item)
		}
		if f := finishedOf(work); f != nil {
			now[client.ObjectKeyFromObject(work)] = *f
		}
	}
	s.dueWorks.reset(now)
	for key := range now {
		s.wake.Add(ctrl.Request{NamespacedName: key})
	}
	return nil
}

// set records one work.
func (s *store) set(obj any, gone bool) error {
	work, ok := obj.(*workv1.ManifestWork)
	if !ok {
		return fmt.Errorf("watching ManifestWorks: got a %T", obj)
	}
	key, now := client.ObjectKeyFromObject(work), finishedOf(work)
	if gone {
		now = nil
	}
	if s.dueWorks.set(key, now) {
		s.wake.Add(ctrl.Request{NamespacedName: key})
	}
	return nil
}

// Transformer drops the fields of a work that do not affect its deletion, before the reflector collects a first list.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if work, ok := obj.(*workv1.ManifestWork); ok {
			work.ManagedFields, work.Annotations, work.OwnerReferences, work.Finalizers = nil, nil, nil, nil
			work.Spec = workv1.ManifestWorkSpec{DeleteOption: work.Spec.DeleteOption}
			work.Status.ResourceStatus = workv1.ManifestResourceStatus{}
		}
		return obj, nil
	}
}
