package work

import (
	"context"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/executor"
)

// rbacWatcher watches RBAC of the spoke, but only while a work has an executor: bindings for whom they bind to what,
// roles for no more than that they changed. Nothing else of them is kept.
type rbacWatcher struct {
	metas    metadata.Interface
	rbac     rbacclient.RbacV1Interface
	bindings *executor.RBAC
	clock    clock.PassiveClock
	// wanted reports whether anybody asks; moved holds one signal when that may have changed.
	wanted func() bool
	moved  chan struct{}
}

// signal says that the answer of wanted may have changed; it never blocks.
func (w *rbacWatcher) signal() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// run watches while anybody asks, until the context ends; it returns when all watches have ended.
func (w *rbacWatcher) run(ctx context.Context) {
	for {
		if w.wanted() {
			w.watch(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
		}
	}
}

// watch runs the watches until nobody asks any more or the context ends.
func (w *rbacWatcher) watch(ctx context.Context) {
	var watches sync.WaitGroup
	follow, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		watches.Wait()
		w.bindings.Clear()
	}()
	for _, one := range w.sources() {
		watches.Go(func() { w.follow(follow, one) })
	}
	for w.wanted() {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
		}
	}
}

// rbacWatch is how one kind is listed and watched, and where its objects go.
type rbacWatch struct {
	from  executor.Source
	kind  runtime.Object
	lists *cache.ListWatch
	// client tells the reflector whether lists can be streamed.
	client any
	store  cache.ReflectorStore
}

// sources are the four watches.
func (w *rbacWatcher) sources() []rbacWatch {
	bindings, clusterBindings := w.rbac.RoleBindings(""), w.rbac.ClusterRoleBindings()
	return []rbacWatch{
		{
			from: executor.RoleBindings, kind: &rbacv1.RoleBinding{}, client: w.rbac,
			lists: listWatch(w.clock, bindings.List, bindings.Watch),
			store: &bindingStore{bindings: w.bindings, from: executor.RoleBindings},
		},
		{
			from: executor.ClusterRoleBindings, kind: &rbacv1.ClusterRoleBinding{}, client: w.rbac,
			lists: listWatch(w.clock, clusterBindings.List, clusterBindings.Watch),
			store: &bindingStore{bindings: w.bindings, from: executor.ClusterRoleBindings},
		},
		w.roles(executor.Roles), w.roles(executor.ClusterRoles),
	}
}

// roles is the watch of the metadata of one kind of role.
func (w *rbacWatcher) roles(from executor.Source) rbacWatch {
	resource := w.metas.Resource(rbacv1.SchemeGroupVersion.WithResource(string(from)))
	return rbacWatch{
		from: from, kind: &metav1.PartialObjectMetadata{}, client: w.metas,
		lists: listWatch(w.clock, resource.List, resource.Watch), store: &roleStore{bindings: w.bindings, from: from},
	}
}

// follow lists and watches one kind until the context ends.
func (w *rbacWatcher) follow(ctx context.Context, one rbacWatch) {
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(one.lists, one.client),
		one.kind, one.store, cache.ReflectorOptions{Name: "agent.work", TypeDescription: string(one.from)})
	told := false
	keepWatching(ctx, reflector, string(one.from), 0, func(err error) {
		w.bindings.Interrupted(one.from)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			told = false
		case refused(err) && !told:
			told = true
			log.FromContext(ctx).Info("the API server refuses a watch of RBAC, so what executors may do is only asked again"+
				" every few minutes; grant list and watch to have it asked at once", "watch", one.from, "error", err.Error())
		}
	})
}

// bindingStore is the store of a watch of bindings: it hands on what matters and keeps nothing.
type bindingStore struct {
	bindings *executor.RBAC
	from     executor.Source
}

var _ cache.TransformingStore = (*bindingStore)(nil)

// Add takes in a binding.
func (s *bindingStore) Add(obj any) error { return s.see(obj, false) }

// Update takes in a binding.
func (s *bindingStore) Update(obj any) error { return s.see(obj, false) }

// Delete takes in that a binding is gone.
func (s *bindingStore) Delete(obj any) error { return s.see(obj, true) }

// Resync has nothing to do.
func (s *bindingStore) Resync() error { return nil }

// Replace takes in the complete state of the watch.
func (s *bindingStore) Replace(items []any, _ string) error {
	now := make(map[executor.BindingKey]executor.Binding, len(items))
	for _, item := range items {
		key, one, err := readBinding(item)
		if err != nil {
			return err
		}
		now[key] = one
	}
	s.bindings.Listed(s.from, now)
	return nil
}

// Transformer drops what nobody needs before the reflector collects a first list.
func (s *bindingStore) Transformer() cache.TransformFunc { return stripManagedFields }

// see takes in one binding.
func (s *bindingStore) see(obj any, gone bool) error {
	key, one, err := readBinding(obj)
	switch {
	case err != nil:
		return err
	case gone:
		s.bindings.SetBinding(key, nil)
	default:
		s.bindings.SetBinding(key, &one)
	}
	return nil
}

// readBinding reads what matters of a binding.
func readBinding(obj any) (executor.BindingKey, executor.Binding, error) {
	switch o := obj.(type) {
	case *rbacv1.RoleBinding:
		return executor.BindingKey{Namespace: o.Namespace, Name: o.Name}, executor.NewBinding(o.RoleRef, o.Subjects, o.Namespace), nil
	case *rbacv1.ClusterRoleBinding:
		return executor.BindingKey{Name: o.Name}, executor.NewBinding(o.RoleRef, o.Subjects, ""), nil
	}
	return executor.BindingKey{}, executor.Binding{}, fmt.Errorf("watching bindings: got a %T", obj)
}

// roleStore is the store of a watch of roles: it tells which of them changed and keeps nothing.
type roleStore struct {
	bindings *executor.RBAC
	from     executor.Source
}

var _ cache.TransformingStore = (*roleStore)(nil)

// Add tells of a role.
func (s *roleStore) Add(obj any) error { return s.see(obj) }

// Update tells of a role.
func (s *roleStore) Update(obj any) error { return s.see(obj) }

// Delete tells of a role.
func (s *roleStore) Delete(obj any) error { return s.see(obj) }

// Resync has nothing to do.
func (s *roleStore) Resync() error { return nil }

// Replace says that the watch is complete.
func (s *roleStore) Replace([]any, string) error {
	s.bindings.Listed(s.from, nil)
	return nil
}

// Transformer drops what nobody needs before the reflector collects a first list.
func (s *roleStore) Transformer() cache.TransformFunc { return stripManagedFields }

// see tells of one role.
func (s *roleStore) see(obj any) error {
	object, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("watching %s: got a %T", s.from, obj)
	}
	s.bindings.RoleChanged(executor.RoleKey{Namespace: object.Namespace, Name: object.Name})
	return nil
}
