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

// Watcher watches RBAC of the spoke, but only while a work has an executor. It keeps the role and the subjects of
// bindings, and nothing of roles: only that they changed matters.
type Watcher struct {
	// Metas watches roles, and Client bindings.
	Metas  metadata.Interface
	Client rbacclient.RbacV1Interface
	// RBAC receives the events.
	RBAC *RBAC
	// Used reports whether any work has an executor; UsedChanged signals that this may have changed.
	Used        func() bool
	UsedChanged watch.Trigger
}

// Run watches while a work has an executor, until the context ends; it returns when all watches have ended.
func (w *Watcher) Run(ctx context.Context) {
	for {
		if w.Used() {
			w.watch(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.UsedChanged:
		}
	}
}

// watch runs the watches until no work has an executor any more or the context ends.
func (w *Watcher) watch(ctx context.Context) {
	var watches sync.WaitGroup
	within, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		watches.Wait()
		w.RBAC.Clear()
	}()
	for _, run := range w.watches() {
		watches.Go(func() { run(within) })
	}
	for w.Used() {
		select {
		case <-ctx.Done():
			return
		case <-w.UsedChanged:
		}
	}
}

// watches returns the four watches.
func (w *Watcher) watches() []func(context.Context) {
	ofNamespaces, ofCluster := w.Client.RoleBindings(""), w.Client.ClusterRoleBindings()
	return []func(context.Context){
		watchRBAC(w, RoleBindings, watch.From(w.Client, ofNamespaces.List, ofNamespaces.Watch),
			&bindingHandler[*rbacv1.RoleBinding]{
				rbac: w.RBAC, from: RoleBindings,
				read: func(b *rbacv1.RoleBinding) (BindingKey, Binding) {
					return BindingKey{Namespace: b.Namespace, Name: b.Name}, NewBinding(b.RoleRef, b.Subjects, b.Namespace)
				},
			}),
		watchRBAC(w, ClusterRoleBindings, watch.From(w.Client, ofCluster.List, ofCluster.Watch),
			&bindingHandler[*rbacv1.ClusterRoleBinding]{
				rbac: w.RBAC, from: ClusterRoleBindings,
				read: func(b *rbacv1.ClusterRoleBinding) (BindingKey, Binding) {
					return BindingKey{Name: b.Name}, NewBinding(b.RoleRef, b.Subjects, "")
				},
			}),
		w.watchRoles(Roles), w.watchRoles(ClusterRoles),
	}
}

// watchRoles returns the watch of the metadata of one kind of role.
func (w *Watcher) watchRoles(from Source) func(context.Context) {
	resource := w.Metas.Resource(rbacv1.SchemeGroupVersion.WithResource(string(from)))
	return watchRBAC(w, from, watch.From(w.Metas, resource.List, resource.Watch),
		&roleHandler{rbac: w.RBAC, from: from})
}

// watchRBAC returns the watch of one kind. While it is interrupted, changes may be missed.
func watchRBAC[T runtime.Object](
	w *Watcher, from Source, source watch.Source, handler watch.Handler[T],
) func(context.Context) {
	one := watch.Watch[T]{
		Name: "agent.work", Description: string(from), Source: source, Handler: handler,
		Refused: watch.Refused, Advice: refusedRBACAdvice, Ended: func(error) { w.RBAC.Interrupted(from) },
	}
	return one.Run
}

// bindingHandler hands the events of one kind of binding to RBAC.
type bindingHandler[T runtime.Object] struct {
	rbac *RBAC
	from Source
	read func(T) (BindingKey, Binding)
}

// Replace implements watch.Handler.
func (h *bindingHandler[T]) Replace(_ context.Context, objects []T, _ string) {
	now := make(map[BindingKey]Binding, len(objects))
	for _, object := range objects {
		key, one := h.read(object)
		now[key] = one
	}
	h.rbac.Listed(h.from, now)
}

// Update implements watch.Handler.
func (h *bindingHandler[T]) Update(_ context.Context, object T) {
	key, now := h.read(object)
	h.rbac.SetBinding(key, &now)
}

// Delete implements watch.Handler.
func (h *bindingHandler[T]) Delete(_ context.Context, object T) {
	key, _ := h.read(object)
	h.rbac.SetBinding(key, nil)
}

// roleHandler tells RBAC which roles changed.
type roleHandler struct {
	rbac *RBAC
	from Source
}

// Replace implements watch.Handler.
func (h *roleHandler) Replace(context.Context, []*metav1.PartialObjectMetadata, string) {
	h.rbac.Listed(h.from, nil)
}

// Update implements watch.Handler.
func (h *roleHandler) Update(_ context.Context, role *metav1.PartialObjectMetadata) {
	h.rbac.RoleChanged(RoleKey{Namespace: role.Namespace, Name: role.Name})
}

// Delete implements watch.Handler.
func (h *roleHandler) Delete(ctx context.Context, role *metav1.PartialObjectMetadata) {
	h.Update(ctx, role)
}
