package approval

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/internal/names"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// ofRequests enqueues unfinished requests.
func (r *Reconciler) ofRequests() handler.EventHandler {
	look := func(o client.Object, q queue) {
		csr, ok := o.(*certificatesv1.CertificateSigningRequest)
		switch {
		case !ok:
		case csr.Labels[names.LabelClusterName] != "" && unfinished(csr):
			add(q, csr, r.backlog.note(csr))
		default:
			r.backlog.forget(csr.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { look(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.backlog.forget(e.Object.GetName()) },
	}
}

// ofKey enqueues the unfinished requests that the index finds under the key of an object.
func (r *Reconciler) ofKey(keyOf func(client.Object) string) handler.EventHandler {
	look := func(ctx context.Context, o client.Object, q queue) {
		for _, csr := range r.waiting(ctx, keyOf(o)) {
			add(q, csr, r.backlog.note(csr))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { look(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { look(ctx, e.Object, q) },
	}
}

// add enqueues a request with a priority.
func add(q queue, csr *certificatesv1.CertificateSigningRequest, priority int) {
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: csr.Name}}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return
	}
	q.Add(request)
}
