package work

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

// rbacWatcher watches RBAC of the spoke, but only while a work has an executor. It keeps the role and the subjects of
// bindings, and nothing of roles: only that they changed matters.
type rbacWatcher struct {
	metas    metadata.Interface
	rbac     rbacclient.RbacV1Interface
	bindings *bindings
	// wanted reports whether any work has an executor; moved signals that this may have changed.
	wanted func() bool
	moved  watch.Trigger
}

// run watches while a work has an executor, until the context ends; it returns when all watches have ended.
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

// watch runs the watches until no work has an executor any more or the context ends.
func (w *rbacWatcher) watch(ctx context.Context) {
	var watches sync.WaitGroup
	within, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		watches.Wait()
		w.bindings.clear()
	}()
	for _, run := range w.watches() {
		watches.Go(func() { run(within) })
	}
	for w.wanted() {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
		}
	}
}

// watches returns the four watches.
func (w *rbacWatcher) watches() []func(context.Context) {
	ofNamespaces, ofCluster := w.rbac.RoleBindings(""), w.rbac.ClusterRoleBindings()
	return []func(context.Context){
		watchRBAC(w, fromRoleBindings, watch.From(w.rbac, ofNamespaces.List, ofNamespaces.Watch),
			&bindingHandler[*rbacv1.RoleBinding]{
				bindings: w.bindings, from: fromRoleBindings,
				read: func(b *rbacv1.RoleBinding) (bindingKey, binding) {
					return bindingKey{namespace: b.Namespace, name: b.Name}, bindingOf(b.RoleRef, b.Subjects, b.Namespace)
				},
			}),
		watchRBAC(w, fromClusterRoleBindings, watch.From(w.rbac, ofCluster.List, ofCluster.Watch),
			&bindingHandler[*rbacv1.ClusterRoleBinding]{
				bindings: w.bindings, from: fromClusterRoleBindings,
				read: func(b *rbacv1.ClusterRoleBinding) (bindingKey, binding) {
					return bindingKey{name: b.Name}, bindingOf(b.RoleRef, b.Subjects, "")
				},
			}),
		w.watchRoles(fromRoles), w.watchRoles(fromClusterRoles),
	}
}

// watchRoles returns the watch of the metadata of one kind of role.
func (w *rbacWatcher) watchRoles(from rbacSource) func(context.Context) {
	resource := w.metas.Resource(rbacv1.SchemeGroupVersion.WithResource(string(from)))
	return watchRBAC(w, from, watch.From(w.metas, resource.List, resource.Watch),
		&roleHandler{bindings: w.bindings, from: from})
}

// watchRBAC returns the watch of one kind. While it is interrupted, changes may be missed.
func watchRBAC[T runtime.Object](
	w *rbacWatcher, from rbacSource, source watch.Source, handler watch.Handler[T],
) func(context.Context) {
	one := watch.Watch[T]{
		Name: "agent.work", Description: string(from), Source: source, Handler: handler,
		Refused: watch.Refused, Advice: refusedRBACAdvice, Ended: func(error) { w.bindings.lost(from) },
	}
	return one.Run
}

// bindingHandler hands the events of one kind of binding to bindings.
type bindingHandler[T runtime.Object] struct {
	bindings *bindings
	from     rbacSource
	read     func(T) (bindingKey, binding)
}

// Replace implements watch.Handler.
func (h *bindingHandler[T]) Replace(_ context.Context, objects []T, _ string) {
	now := make(map[bindingKey]binding, len(objects))
	for _, object := range objects {
		key, one := h.read(object)
		now[key] = one
	}
	h.bindings.listed(h.from, now)
}

// Update implements watch.Handler.
func (h *bindingHandler[T]) Update(_ context.Context, object T) {
	key, now := h.read(object)
	h.bindings.changed(key, &now)
}

// Delete implements watch.Handler.
func (h *bindingHandler[T]) Delete(_ context.Context, object T) {
	key, _ := h.read(object)
	h.bindings.changed(key, nil)
}

// roleHandler tells bindings which roles changed.
type roleHandler struct {
	bindings *bindings
	from     rbacSource
}

// Replace implements watch.Handler.
func (h *roleHandler) Replace(context.Context, []*metav1.PartialObjectMetadata, string) {
	h.bindings.listed(h.from, nil)
}

// Update implements watch.Handler.
func (h *roleHandler) Update(_ context.Context, role *metav1.PartialObjectMetadata) {
	h.bindings.roleChanged(roleKey{namespace: role.Namespace, name: role.Name})
}

// Delete implements watch.Handler.
func (h *roleHandler) Delete(ctx context.Context, role *metav1.PartialObjectMetadata) {
	h.Update(ctx, role)
}
