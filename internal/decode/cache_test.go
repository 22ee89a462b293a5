package decode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server is an API server of ManagedClusters that streams no lists.
type server struct {
	mu     sync.Mutex
	items  []string
	status int
	lists  int
	events chan string
	// watches is how many watches began, open how many of them have not ended.
	watches, open int
}

func (s *server) set(status int, items ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.items = status, items
}

// watching counts a watch that begins, 1, or ends, -1.
func (s *server) watching(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches += max(change, 0)
	s.open += change
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, items := s.status, s.items
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status != 0 || r.URL.Query().Has("sendInitialEvents") {
		w.WriteHeader(max(status, http.StatusBadRequest))
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"broken"}`)
		return
	}
	if !r.URL.Query().Has("watch") {
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		_, _ = io.WriteString(w, listOf(items...))
		return
	}
	s.watching(1)
	defer s.watching(-1)
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-s.events:
			_, _ = io.WriteString(w, event)
			_ = out.Flush()
		}
	}
}

// world is a cache of the clusters of a server.
type world struct {
	*server
	objects *Objects
	cache   cache.Cache
	clock   *clocktesting.FakeClock
	mu      sync.Mutex
	log     []string
	told    []Bad
}

func start(t *testing.T, items ...string) *world {
	t.Helper()
	w := &world{server: &server{items: items, events: make(chan string)}, clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))}
	api := httptest.NewServer(w.server)
	t.Cleanup(api.Close)
	k, scheme := clusters(t)
	logger := funcr.New(func(_, line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.log = append(w.log, line)
	}, funcr.Options{})
	var err error
	w.objects, err = New(scheme, w.clock, nil)
	require.NoError(t, err)
	w.objects.Logger = logger
	w.objects.Tell(func(b Bad) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, b)
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(k.gvk, meta.RESTScopeRoot)
	w.cache, err = w.objects.NewCache(&rest.Config{Host: api.URL, QPS: -1}, cache.Options{Scheme: scheme, Mapper: mapper})
	require.NoError(t, err)
	_, err = w.cache.GetInformer(t.Context(), &clusterv1.ManagedCluster{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Start(ctx) }()
	t.Cleanup(func() { stop(); api.CloseClientConnections(); require.NoError(t, <-ended) })
	return w
}

func (w *world) get(t *testing.T, name string) error {
	t.Helper()
	var got clusterv1.ManagedCluster
	return w.cache.Get(t.Context(), types.NamespacedName{Name: name}, &got)
}

func (w *world) names(t *testing.T, opts ...client.ListOption) ([]string, error) {
	t.Helper()
	var list clusterv1.ManagedClusterList
	err := w.cache.List(t.Context(), &list, opts...)
	names := []string{}
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	return names, err
}

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	require.Eventually(t, holds, 30*time.Second, 5*time.Millisecond, what)
}

func TestACacheGoesOnWithoutObjectsThatCannotBeDecoded(t *testing.T) {
	w := start(t, good, bad)
	require.True(t, w.cache.WaitForCacheSync(t.Context()))
	require.NoError(t, w.get(t, "good"))
	err := w.get(t, "bad")
	require.True(t, IsUnknown(err), "%v", err)
	assert.False(t, apierrors.IsNotFound(err))
	require.ErrorContains(t, err, "ManagedCluster bad cannot be decoded: ")
	assert.True(t, apierrors.IsNotFound(w.get(t, "none")))

	_, err = w.names(t)
	require.True(t, IsUnknown(err), "a list without it would make it look gone")
	names, err := w.names(t, LeaveOut)
	require.NoError(t, err)
	assert.Equal(t, []string{"good"}, names)
	names, err = w.names(t, client.UnsafeDisableDeepCopy, Metadata)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"good", "bad"}, names)
	names, err = w.names(t, client.MatchingLabels{"a": "none"})
	require.NoError(t, err, "it is not in that list")
	assert.Empty(t, names)

	require.Len(t, w.objects.Bad(), 1)
	assert.Equal(t, types.UID("u2"), w.objects.Bad()[0].UID)
	require.NoError(t, w.objects.Failing())

	t.Run("an event makes it good", func(t *testing.T) {
		w.events <- `{"type":"MODIFIED","object":` + strings.Replace(bad, "99999999999", "70", 1) + `}`
		eventually(t, func() bool { return w.get(t, "bad") == nil }, "it is known")
		assert.Empty(t, w.objects.Bad())
		_, err := w.names(t)
		require.NoError(t, err)
	})
	t.Run("an event makes another bad", func(t *testing.T) {
		w.events <- `{"type":"MODIFIED","object":` + strings.Replace(good, ":60", `:"x"`, 1) + `}`
		eventually(t, func() bool { return IsUnknown(w.get(t, "good")) }, "it is unknown, and not what it was")
		require.NoError(t, w.get(t, "bad"))
	})
	t.Run("an object that nobody can read is deleted", func(t *testing.T) {
		w.events <- `{"type":"DELETED","object":` + strings.Replace(good, ":60", `:"x"`, 1) + `}`
		eventually(t, func() bool { return apierrors.IsNotFound(w.get(t, "good")) }, "it is gone")
		assert.Empty(t, w.objects.Bad())
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Len(t, w.told, 2, "once per object and version")
	assert.Len(t, w.log, 2)
	assert.Contains(t, w.log[0], `"name"="bad"`)
}

func TestAWatchThatBreaksOnAnObjectContinuesWithoutIt(t *testing.T) {
	w := start(t, good)
	require.True(t, w.cache.WaitForCacheSync(t.Context()))
	_, err := w.names(t)
	require.NoError(t, err)
	w.set(0, good, bad)
	w.events <- `{"type":"ADDED","object":` + bad + `}` // the watch decodes as a whole, and ends
	eventually(t, func() bool { return IsUnknown(w.get(t, "bad")) }, "it is known to exist")
	require.NoError(t, w.get(t, "good"))
	eventually(t, func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return w.watches > 1 && w.open == 1
	}, "it watches again, and the watch that ended takes no event any more")
	w.events <- `{"type":"ADDED","object":` + strings.Replace(good, `"good"`, `"later"`, 1) + `}`
	eventually(t, func() bool { return w.get(t, "later") == nil }, "the watch goes on")
}

// An informer asks for one object to see whether the store of its API server went back to an earlier state.
func TestAListForTheVersionSaysNothingAboutTheOtherObjects(t *testing.T) {
	w := start(t, good, bad)
	require.True(t, w.cache.WaitForCacheSync(t.Context()))
	require.Len(t, w.objects.Bad(), 1)
	for _, s := range w.objects.informers() {
		one := s.wrap(&toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &clusterv1.ManagedClusterList{}, nil
		}})
		_, err := toolscache.ToListerWatcherWithContext(one).ListWithContext(t.Context(), metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
		assert.True(t, s.careful.Load(), "the next event may be one that cannot be decoded")
	}
	assert.Len(t, w.objects.Bad(), 1)
}

func TestAKindThatCannotBeListedForAMinuteIsReported(t *testing.T) {
	w := start(t)
	require.True(t, w.cache.WaitForCacheSync(t.Context()))
	require.NoError(t, w.objects.Failing())
	source := w.objects.informers()[0]
	source.note(t.Context(), errors.New("the webhook is away"))
	w.clock.Step(59 * time.Second)
	source.note(t.Context(), errors.New("it is still away"))
	require.NoError(t, w.objects.Failing(), "it may come back")
	w.clock.Step(time.Second)
	require.EqualError(t, w.objects.Failing(),
		"ManagedCluster cannot be listed or watched since 2001-09-09T01:46:40Z: it is still away")
	ended, end := context.WithCancel(t.Context())
	end()
	source.note(ended, nil)
	require.Error(t, w.objects.Failing(), "a request that was cancelled says nothing")
	source.note(t.Context(), nil)
	require.NoError(t, w.objects.Failing())
}

func TestOnlyWhatTheAPIServerAnsweredIsTakenApart(t *testing.T) {
	syntax := json.Unmarshal([]byte(`{`), new(any))
	for err, want := range map[error]bool{
		nil: false, syntax: true, apierrors.NewBadRequest("x"): false, fmt.Errorf("x: %w", apierrors.NewGone("x")): false,
	} {
		assert.Equal(t, want, undecodable(t.Context(), err), "%v", err)
	}
	for _, header := range []string{"application/vnd.kubernetes.protobuf", "", "text/plain"} {
		assert.False(t, isJSON(http.Header{"Content-Type": {header}}), header)
	}
	assert.True(t, isJSON(http.Header{"Content-Type": {"application/json; charset=utf-8"}}))
}
