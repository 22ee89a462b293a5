package executor

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"

	"github.com/spokelet/spokelet/internal/watch"
)

// refusedRBACAdvice is logged once for each watch of RBAC that the API server refuses.
const refusedRBACAdvice = "the API server refuses a watch of RBAC, so what executors may do is only asked again every" +
	" few minutes; grant list and watch to have it asked at once"

// watcher watches RBAC of the spoke, but only while a work has an executor. It keeps the role and the subjects of
// bindings, and nothing of roles: only that they changed matters.
type watcher struct {
	bindings rbacclient.RbacV1Interface
	roles    metadata.Interface
	// rbac receives the events.
	rbac *rbacState
	// used reports whether any work has an executor; usedChanged signals that this may have changed.
	used        func() bool
	usedChanged watch.Trigger
}

// run watches while a work has an executor, until the context ends; it returns when all watches have ended.
func (w *watcher) run(ctx context.Context) {
	for {
		if w.used() {
			w.watch(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.usedChanged:
		}
	}
}

// watch runs the watches until no work has an executor any more or the context ends.
func (w *watcher) watch(ctx context.Context) {
	var watches sync.WaitGroup
	within, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		watches.Wait()
		w.rbac.clear()
	}()
	for _, run := range w.watches() {
		watches.Go(func() { run(within) })
	}
	for w.used() {
		select {
		case <-ctx.Done():
			return
		case <-w.usedChanged:
		}
	}
}

// watches returns the four watches.
func (w *watcher) watches() []func(context.Context) {
	ofNamespaces, ofCluster := w.bindings.RoleBindings(""), w.bindings.ClusterRoleBindings()
	return []func(context.Context){
		watchRBAC(w, roleBindings, watch.From(w.bindings, ofNamespaces.List, ofNamespaces.Watch),
			&bindingHandler[*rbacv1.RoleBinding]{
				rbac: w.rbac, from: roleBindings,
				read: func(b *rbacv1.RoleBinding) (bindingKey, binding) {
					return bindingKey{Namespace: b.Namespace, Name: b.Name}, bindingOf(b.RoleRef, b.Subjects, b.Namespace)
				},
			}),
		watchRBAC(w, clusterRoleBindings, watch.From(w.bindings, ofCluster.List, ofCluster.Watch),
			&bindingHandler[*rbacv1.ClusterRoleBinding]{
				rbac: w.rbac, from: clusterRoleBindings,
				read: func(b *rbacv1.ClusterRoleBinding) (bindingKey, binding) {
					return bindingKey{Name: b.Name}, bindingOf(b.RoleRef, b.Subjects, "")
				},
			}),
		w.watchRoles(roles), w.watchRoles(clusterRoles),
	}
}

// watchRoles returns the watch of the metadata of one kind of role.
func (w *watcher) watchRoles(from rbacSource) func(context.Context) {
	resource := w.roles.Resource(rbacv1.SchemeGroupVersion.WithResource(string(from)))
	return watchRBAC(w, from, watch.From(w.roles, resource.List, resource.Watch),
		&roleHandler{rbac: w.rbac, from: from})
}

// watchRBAC returns the watch of one kind. While it is interrupted, changes may be missed.
func watchRBAC[T runtime.Object](
	w *watcher, from rbacSource, source watch.Source, handler watch.Handler[T],
) func(context.Context) {
	one := watch.Watch[T]{
		Name: "agent.work", Description: string(from), Source: source, Handler: handler,
		Refused: watch.Refused, Advice: refusedRBACAdvice, Ended: func(error) { w.rbac.interrupted(from) },
	}
	return one.Run
}

// bindingHandler records the events of one kind of binding.
type bindingHandler[T runtime.Object] struct {
	rbac *rbacState
	from rbacSource
	read func(T) (bindingKey, binding)
}

// Replace implements watch.Handler.
func (h *bindingHandler[T]) Replace(_ context.Context, objects []T, _ string) {
	now := make(map[bindingKey]binding, len(objects))
	for _, object := range objects {
		key, one := h.read(object)
		now[key] = one
	}
	h.rbac.listed(h.from, now)
}

// Update implements watch.Handler.
func (h *bindingHandler[T]) Update(_ context.Context, object T) {
	key, now := h.read(object)
	h.rbac.setBinding(key, &now)
}

// Delete implements watch.Handler.
func (h *bindingHandler[T]) Delete(_ context.Context, object T) {
	key, _ := h.read(object)
	h.rbac.setBinding(key, nil)
}

// roleHandler records which roles changed.
type roleHandler struct {
	rbac *rbacState
	from rbacSource
}

// Replace implements watch.Handler.
func (h *roleHandler) Replace(context.Context, []*metav1.PartialObjectMetadata, string) {
	h.rbac.listed(h.from, nil)
}

// Update implements watch.Handler.
func (h *roleHandler) Update(_ context.Context, role *metav1.PartialObjectMetadata) {
	h.rbac.roleChanged(roleKey{Namespace: role.Namespace, Name: role.Name})
}

// Delete implements watch.Handler.
func (h *roleHandler) Delete(ctx context.Context, role *metav1.PartialObjectMetadata) {
	h.Update(ctx, role)
}
