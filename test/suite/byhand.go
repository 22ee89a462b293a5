package suite

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconciler calls a reconciler by hand, on a real API server and under a clock that only the test moves: so a test of
// what happens after minutes takes none, and says to the second when it happens. The reconciler reads and writes with
// Client.
type Reconciler struct {
	// Client holds what the reconciler reads and writes with.
	Client *Live
	// Clock is the clock of the reconciler.
	Clock *clocktesting.FakePassiveClock
	// Reconcile is its method.
	Reconcile func(context.Context, reconcile.Request) (reconcile.Result, error)
}

// Once calls the reconciler once and returns after how long it wants to be called again; zero means when something
// changes.
func (r *Reconciler) Once(t T, request reconcile.Request) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	return result.RequeueAfter
}

// Settle calls the reconciler until a call writes nothing, as watches would, and returns what that call wants.
func (r *Reconciler) Settle(t T, request reconcile.Request) time.Duration {
	t.Helper()
	const most = 20
	for range most {
		before := r.Client.Writes()
		wake := r.Once(t, request)
		if r.Client.Writes() == before {
			return wake
		}
	}
	t.Errorf("%s does not settle within %d calls", request, most)
	t.FailNow()
	return 0
}

// Step moves the clock.
func (r *Reconciler) Step(d time.Duration) { r.Clock.SetTime(r.Clock.Now().Add(d)) }

// Sleep moves the clock to the instant at which the reconciler wants to be called again, which there must be, and
// calls it until it settles.
func (r *Reconciler) Sleep(t T, request reconcile.Request) time.Duration {
	t.Helper()
	wake := r.Settle(t, request)
	require.Positive(t, wake, "it must want to be called again")
	r.Step(wake)
	r.Settle(t, request)
	return wake
}

// Live is a client that is in for the cache of a manager: it reads the API server, so it shows what was written a
// moment ago, and it knows the indexes of the cache. It counts writes.
type Live struct {
	client.Client
	indexes []index
	writes  atomic.Int64
}

// index holds what IndexField received.
type index struct {
	kind    reflect.Type
	field   string
	extract client.IndexerFunc
}

// NewLive returns a client.
func NewLive(t T, config *rest.Config) *Live {
	t.Helper()
	l := &Live{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{l, next} })
	l.Client = NewClient(t, config)
	return l
}

// Writes returns how many requests to write were sent.
func (l *Live) Writes() int64 { return l.writes.Load() }

// IndexField implements client.FieldIndexer.
func (l *Live) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	l.indexes = append(l.indexes, index{reflect.TypeOf(object).Elem(), field, extract})
	return nil
}

// List implements client.Reader; a field selector refers to an index.
func (l *Live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var all client.ListOptions
	all.ApplyOptions(options)
	selector := all.FieldSelector
	all.FieldSelector, all.UnsafeDisableDeepCopy = nil, nil
	if err := l.Client.List(ctx, list, &all); err != nil || selector == nil || selector.Empty() {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	for _, want := range selector.Requirements() {
		items = l.selected(items, want)
	}
	return meta.SetList(list, items)
}

// selected returns those of the items that an index has under a value.
func (l *Live) selected(items []runtime.Object, want fields.Requirement) []runtime.Object {
	return slices.DeleteFunc(items, func(item runtime.Object) bool {
		object, ok := item.(client.Object)
		for _, i := range l.indexes {
			if ok && i.field == want.Field && i.kind == reflect.TypeOf(item).Elem() {
				return !slices.Contains(i.extract(object), want.Value)
			}
		}
		return true
	})
}

// Cache returns a cache that can be read and nothing else.
func (l *Live) Cache() cache.Cache { return liveCache{live: l} }

type liveCache struct {
	cache.Cache
	live *Live
}

// Get implements client.Reader.
func (c liveCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.live.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (c liveCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.live.List(ctx, list, options...)
}

// counter counts the requests that write.
type counter struct {
	live *Live
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		c.live.writes.Add(1)
	}
	return c.next.RoundTrip(request)
}
