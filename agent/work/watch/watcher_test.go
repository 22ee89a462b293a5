package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	waitFor = 5 * time.Second
	tick    = 5 * time.Millisecond
)

// running is a watcher that runs on a fake API server.
type running struct {
	*Watcher
	client *fake.FakeMetadataClient
	mu     sync.Mutex
	woken  map[Owner]int
}

// run starts a watcher that ends with the test; prepare may change the fake before.
func run(t *testing.T, prepare func(*fake.FakeMetadataClient)) *running {
	t.Helper()
	return runWith(t, DefaultMaxWatches, DefaultRelist, prepare)
}

// runWith is run with a limit and a relist period.
func runWith(
	t *testing.T, limit int, relist time.Duration, prepare func(*fake.FakeMetadataClient),
) *running {
	t.Helper()
	scheme := fake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	r := &running{client: fake.NewSimpleMetadataClient(scheme), woken: map[Owner]int{}}
	prepare(r.client)
	_, r.Watcher = NewWatcher(r.client, Bounds{limit, relist}, func(o Owner) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.woken[o]++
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// wokenBy returns how often an owner was woken.
func (r *running) wokenBy(o Owner) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.woken[o]
}

// awaitWoken waits until an owner was woken so often, and not more often. What the store says changes before that.
func (r *running) awaitWoken(t *testing.T, o Owner, times int, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return r.wokenBy(o) >= times }, waitFor, tick, why)
	assert.Equal(t, times, r.wokenBy(o), why)
}

// partial is the metadata of a ConfigMap in ns.
func partial(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version},
	}
}

// Shows: work/watches-end
func TestWatcherFollowsWhatIsClaimed(t *testing.T) {
	events := watch.NewFake()
	var mu sync.Mutex
	watches := 0
	r := run(t, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &metav1.List{
				ListMeta: metav1.ListMeta{ResourceVersion: "10"},
				Items:    []runtime.RawExtension{{Object: partial("a", "10")}},
			}, nil
		})
		c.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			watches++
			return true, events, nil
		})
	})
	h := Owner{Name: "w"}
	r.store.Claim(h, claims("a"), nil)
	r.store.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10"}})
	events.Modify(partial("b", "11"))
	events.Modify(partial("a", "10"))
	events.Modify(partial("a", "12"))
	require.Eventually(t, func() bool { return r.wokenBy(h) == 1 }, waitFor, tick)
	events.Delete(partial("a", "13"))
	require.Eventually(t, func() bool { return r.wokenBy(h) == 2 }, waitFor, tick)
	_, drift := r.store.Look(h, thing("a"))
	assert.Equal(t, Deleted, drift)
	mu.Lock()
	assert.Equal(t, 1, watches)
	mu.Unlock()

	r.store.Claim(h, nil, nil)
	require.Eventually(t, events.IsStopped, waitFor, tick, "what nobody claims is not watched")
}

func TestWatcherTellsOfARefusalOnce(t *testing.T) {
	r := run(t, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)
		})
	})
	h := Owner{Name: "w"}
	r.store.Claim(h, claims("a"), nil)
	require.Eventually(t, func() bool { return r.store.Unwatched(h, thing("a")) }, waitFor, tick)
	r.awaitWoken(t, h, 1, "once")
}

// Shows: work/watches-fail
func TestObjectsWhoseWatchKeepsFailingAreRead(t *testing.T) {
	c := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	c.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("the conversion webhook is away"))
	})
	woken := make(chan Owner, 10)
	store, watcher := NewWatcher(c, Bounds{DefaultMaxWatches, DefaultRelist}, func(o Owner) { woken <- o })
	h, now := Owner{Name: "w"}, clocktesting.NewFakeClock(epoch)
	store.Claim(h, claims("a"), nil)
	one := watcher.watchOf(only(cmWatch()))
	one.Clock = now
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); one.Run(ctx) }()
	defer func() { cancel(); <-done }()
	require.Eventually(t, now.HasWaiters, waitFor, tick)
	assert.False(t, store.Unwatched(h, thing("a")), "most failures go away by themselves")
	require.Eventually(t, func() bool { now.Step(30 * time.Second); return store.Unwatched(h, thing("a")) }, waitFor, tick)
	assert.Equal(t, 1, store.Size().Refused)
	assert.Equal(t, h, <-woken)
	for range 5 {
		require.Eventually(t, now.HasWaiters, waitFor, tick)
		now.Step(30 * time.Second)
	}
	assert.Empty(t, woken, "its owners are woken once")
}

func TestAWatchNamesWhatItCovers(t *testing.T) {
	assert.Equal(t, "configmaps in ns", cmWatch().String())
	assert.Equal(t, "customresourcedefinitions.apiextensions.k8s.io", Definitions().String())
	assert.Equal(t, "configmaps in ns", only(cmWatch()).String())
	assert.Equal(t, "configmaps in all namespaces", everywhere(cmWatch().Resource).String())
}
