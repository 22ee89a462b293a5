package approval

import (
	"context"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/internal/names"
)

// reported remembers which notes were recorded, so that they are not sent again. It is a cache: for a forgotten note,
// the API server reports that the Event exists.
type reported struct {
	once  sync.Once
	notes *lru.Cache
}

func (t *reported) isNew(hash uint64) bool {
	_, found := t.cache().Get(hash)
	return !found
}

func (t *reported) add(hash uint64) { t.cache().Add(hash, struct{}{}) }

func (t *reported) cache() *lru.Cache {
	t.once.Do(func() { t.notes = lru.New(maxReportedNotes) })
	return t.notes
}

// maxReported is the number of unfinished requests of one requester that get Events. A user who may create requests
// must not make the hub write without end.
const maxReported = 250

// backlog counts the unfinished requests of each requester. A request of a requester with fewer of them is judged
// first, so that nobody delays others by creating many. The zero value is empty.
type backlog struct {
	mu         sync.Mutex
	requesters map[string]*requester
	// of maps the name of an unfinished request to its requester.
	of map[string]string
}

// requester is a user with unfinished requests.
type requester struct {
	// reported maps the name of a request to whether it gets Events.
	reported      map[string]bool
	reportedCount int
}

// note counts an unfinished request and returns its priority.
func (c *backlog) note(csr *certificatesv1.CertificateSigningRequest) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 1 - len(c.entry(csr).reported)
}

// entry counts an unfinished request and returns its requester.
func (c *backlog) entry(csr *certificatesv1.CertificateSigningRequest) *requester {
	if c.of == nil {
		c.of, c.requesters = map[string]string{}, map[string]*requester{}
	}
	user := csr.Spec.Username
	if before, known := c.of[csr.Name]; known && before != user {
		c.drop(csr.Name)
	}
	c.of[csr.Name] = user
	entry := c.requesters[user]
	if entry == nil {
		entry = &requester{reported: map[string]bool{}}
		c.requesters[user] = entry
	}
	if _, known := entry.reported[csr.Name]; !known {
		entry.reported[csr.Name] = false
	}
	return entry
}

// forget stops counting a request.
func (c *backlog) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
}

func (c *backlog) drop(name string) {
	user, known := c.of[name]
	if !known {
		return
	}
	delete(c.of, name)
	entry := c.requesters[user]
	if entry.reported[name] {
		entry.reportedCount--
	}
	if delete(entry.reported, name); len(entry.reported) == 0 {
		delete(c.requesters, user)
	}
}

// mayReport reports whether a request gets Events. A request that is not counted is gone.
func (c *backlog) mayReport(csr *certificatesv1.CertificateSigningRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	user, known := c.of[csr.Name]
	if !known {
		return true
	}
	entry := c.requesters[user]
	if !entry.reported[csr.Name] && entry.reportedCount < maxReported {
		entry.reported[csr.Name] = true
		entry.reportedCount++
	}
	return entry.reported[csr.Name]
}

// memory are caches of what was recorded, and of the requests in the queue.
type memory struct {
	reported reported
	backlog  backlog
	counters counters
}

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
