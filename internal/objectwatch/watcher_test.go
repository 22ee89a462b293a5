package objectwatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	patience = 10 * time.Second
	tick     = 5 * time.Millisecond
)

// hub is an API server of widgets with its discovery, and the Watcher under test.
type hub struct {
	*fake.FakeDynamicClient
	clock   *clocktesting.FakeClock
	watcher *Watcher

	mu sync.Mutex
	// versions are the served versions of widgets; failing is the error of discovery, refused that of each request for
	// the objects of a namespace.
	versions []string
	failing  error
	refused  map[string]error
	// lists counts the lists of each namespace, changes the calls of the callback; following are the open watches.
	lists     map[string]int
	changes   map[Ref]int
	following map[*following]bool
	// end ends the watcher and returns when it has: only then are all calls of the callback counted, since an answer
	// changes before the call that tells of it.
	end func()
}

// following is a watch that knows whether it was stopped.
type following struct {
	apiwatch.Interface
	hub *hub
}

func (f *following) Stop() {
	f.Interface.Stop()
	f.hub.set(func(h *hub) { delete(h.following, f) })
}

func (h *hub) set(change func(*hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// ServerGroupsAndResources implements Discovery.
func (h *hub) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failing != nil || len(h.versions) == 0 {
		return nil, nil, h.failing
	}
	group, lists := &metav1.APIGroup{Name: widgets.Group}, []*metav1.APIResourceList{}
	for _, version := range h.versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version})
		lists = append(lists, &metav1.APIResourceList{
			GroupVersion: widgets.Group + "/" + version,
			APIResources: []metav1.APIResource{{Name: "widgets", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
		})
	}
	group.PreferredVersion = group.Versions[0]
	return []*metav1.APIGroup{group}, lists, nil
}

// refusal returns the error of a request.
func (h *hub) refusal(action clienttesting.Action) error {
	for _, version := range h.versions {
		if version == action.GetResource().Version {
			return h.refused[action.GetNamespace()]
		}
	}
	return errGone
}

func newHub(t *testing.T, limit int) *hub {
	t.Helper()
	h := &hub{
		clock: clocktesting.NewFakeClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)), versions: []string{"v1"},
		refused: map[string]error{}, lists: map[string]int{}, changes: map[Ref]int{}, following: map[*following]bool{},
	}
	h.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			widgets: "WidgetList", widgets.GroupResource().WithVersion("v2"): "WidgetList",
		})
	h.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lists[action.GetNamespace()]++
		err := h.refusal(action)
		return err != nil, nil, err
	})
	h.PrependWatchReactor("*", func(action clienttesting.Action) (bool, apiwatch.Interface, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err := h.refusal(action); err != nil {
			return true, nil, err
		}
		events, err := h.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, fmt.Errorf("watching: %w", err)
		}
		f := &following{Interface: events, hub: h}
		h.following[f] = true
		return true, f, nil
	})
	h.watcher = NewFor(Hub{h, h, h.clock}, limit, func(ref Ref) {
		h.watcher.Get(ref) // the callback may call Get
		h.set(func(h *hub) { h.changes[ref]++ })
	})
	return h
}

// start starts the watcher; the test ends when it has ended.
func (h *hub) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.watcher.Start(ctx) }()
	h.end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		h.set(func(h *hub) { assert.Empty(t, h.following, "no watch outlives Start") })
	})
	t.Cleanup(h.end)
}

func ref(namespace, name string) Ref {
	return Ref{Group: widgets.Group, Resource: widgets.Resource, Namespace: namespace, Name: name}
}

// write creates or updates a widget.
func (h *hub) write(t *testing.T, of Ref, value string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": of.Namespace, "name": of.Name, "resourceVersion": value},
		"spec":     map[string]any{"value": value}, "status": map[string]any{"value": value},
	}}
	c := h.Resource(widgets).Namespace(of.Namespace)
	_, err := c.Update(t.Context(), object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.Create(t.Context(), object, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

// value is the value of a widget that was found, and otherwise why there is none.
func (h *hub) value(of Ref) string {
	switch state := h.watcher.Get(of); state.Phase {
	case Found:
		value, _, _ := unstructured.NestedString(state.Object.Object, "spec", "value")
		return value
	case Missing:
		return "missing"
	default:
		return string(state.Cause.Reason)
	}
}

func (h *hub) await(t *testing.T, want map[Ref]string) {
	t.Helper()
	got := map[Ref]string{}
	require.Eventually(t, func() bool {
		for of := range want {
			got[of] = h.value(of)
		}
		return assert.ObjectsAreEqual(want, got)
	}, patience, tick, "want %v, have %v", want, got)
}

func (h *hub) awaitWatches(t *testing.T, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.following) == want && h.watcher.Watches() == want
	}, patience, tick, "want %d watches", want)
}

func TestAnObjectIsWatchedWhileSomebodyWantsIt(t *testing.T) {
	h := newHub(t, 0)
	a, b := ref("ns", "a"), ref("ns", "b")
	h.write(t, a, "1")
	h.watcher.Want("one", []Ref{a, b, a})
	h.watcher.Want("two", []Ref{b})
	assert.Equal(t, "Pending", h.value(a), "nothing is known before Start")
	h.start(t)
	h.await(t, map[Ref]string{a: "1", b: "missing"})
	h.awaitWatches(t, 2)
	assert.NotContains(t, h.watcher.Get(a).Object.Object, "status")

	h.write(t, a, "2")
	h.write(t, b, "3")
	h.write(t, ref("ns", "other"), "9")
	h.await(t, map[Ref]string{a: "2", b: "3"})
	require.NoError(t, h.Resource(widgets).Namespace("ns").Delete(t.Context(), "b", metav1.DeleteOptions{}))
	h.await(t, map[Ref]string{b: "missing"})

	h.watcher.Want("one", []Ref{b})
	h.awaitWatches(t, 1)
	h.await(t, map[Ref]string{a: "Pending"})
	h.watcher.Want("one", nil)
	h.watcher.Want("one", nil)
	h.await(t, map[Ref]string{b: "missing"})
	h.watcher.Want("two", nil)
	h.awaitWatches(t, 0)
	h.await(t, map[Ref]string{b: "Pending"})
	h.end()
	assert.Equal(t, map[Ref]int{a: 3, b: 4}, h.changes,
		"one call for each change of an answer, and one when it is not wanted any more")
	h.watcher.mu.Lock()
	defer h.watcher.mu.Unlock()
	assert.Empty(t, h.watcher.entries)
	assert.Empty(t, h.watcher.kinds)
	assert.Empty(t, h.watcher.owners)
}

func TestObjectsBeyondTheLimitFollowWhenOthersGo(t *testing.T) {
	h := newHub(t, 2)
	a, b, c, d := ref("ns", "a"), ref("ns", "b"), ref("ns", "c"), ref("ns", "d")
	for _, of := range []Ref{a, b, c, d} {
		h.write(t, of, "1")
	}
	h.start(t)
	h.watcher.Want("one", []Ref{a, b})
	h.await(t, map[Ref]string{a: "1", b: "1"})
	h.watcher.Want("two", []Ref{c})
	h.watcher.Want("three", []Ref{d})
	h.await(t, map[Ref]string{a: "1", b: "1", c: "LimitExceeded", d: "LimitExceeded"})
	h.watcher.Want("two", nil)
	h.watcher.Want("one", []Ref{b})
	h.await(t, map[Ref]string{b: "1", d: "1"})
	h.awaitWatches(t, 2)
}

func TestWhatIsBeyondTheShareOfAnOwnerIsNotWatchedForIt(t *testing.T) {
	h := newHub(t, 0)
	a, b, c := ref("ns", "a"), ref("ns", "b"), ref("ns", "c")
	for _, of := range []Ref{a, b, c} {
		h.write(t, of, "1")
	}
	h.start(t)
	h.watcher.Want("one", []Ref{a}, b, c)
	h.await(t, map[Ref]string{a: "1", b: "ShareExceeded", c: "ShareExceeded"})
	h.awaitWatches(t, 1)
	h.watcher.Want("two", []Ref{c})
	h.await(t, map[Ref]string{a: "1", b: "ShareExceeded", c: "1"})
	h.watcher.Want("one", []Ref{b}, a)
	h.await(t, map[Ref]string{a: "ShareExceeded", b: "1", c: "1"})
	h.awaitWatches(t, 2)
	h.watcher.Want("two", nil, a)
	h.await(t, map[Ref]string{a: "ShareExceeded", b: "1", c: "Pending"})
	h.watcher.Want("one", nil)
	h.watcher.Want("two", nil)
	h.awaitWatches(t, 0)
	h.await(t, map[Ref]string{a: "Pending", b: "Pending"})
	h.end()
	assert.Equal(t, map[Ref]int{a: 3, b: 4, c: 4}, h.changes,
		"one call for each change of an answer, and one when it is not wanted any more")
	h.watcher.mu.Lock()
	defer h.watcher.mu.Unlock()
	assert.Empty(t, h.watcher.entries)
	assert.Empty(t, h.watcher.kinds)
	assert.Empty(t, h.watcher.owners)
}

func TestAKindThatAppearsLaterIsNoticed(t *testing.T) {
	h := newHub(t, 0)
	a := ref("ns", "a")
	h.write(t, a, "1")
	h.set(func(h *hub) { h.failing = errDown })
	h.start(t)
	h.watcher.Want("one", []Ref{a})
	h.await(t, map[Ref]string{a: "Unavailable"})
	h.set(func(h *hub) { h.failing, h.versions = nil, nil })
	h.pass(t, map[Ref]string{a: "NotServed"})
	h.set(func(h *hub) { h.versions = []string{"v1"} })
	h.pass(t, map[Ref]string{a: "1"})
}

// pass lets time pass until objects have their answers; at most as long as a kind waits to be looked up again.
func (h *hub) pass(t *testing.T, want map[Ref]string) {
	t.Helper()
	began := h.clock.Now()
	require.Eventually(t, func() bool {
		for of := range want {
			if h.value(of) != want[of] {
				h.clock.Step(50 * time.Millisecond)
				return false
			}
		}
		return true
	}, patience, time.Millisecond, "want %v", want)
	t.Logf("%v passed", h.clock.Since(began))
}

func TestAKindThatIsServedInAnotherVersionIsFollowed(t *testing.T) {
	h := newHub(t, 0)
	a := ref("ns", "a")
	h.write(t, a, "1")
	h.start(t)
	h.watcher.Want("one", []Ref{a})
	h.await(t, map[Ref]string{a: "1"})
	h.awaitWatches(t, 1)

	h.set(func(h *hub) { h.versions = nil })
	h.cut()
	h.pass(t, map[Ref]string{a: "NotServed"})
	h.set(func(h *hub) { h.versions = []string{"v2"} })
	h.pass(t, map[Ref]string{a: "missing"}) // the fake keeps the objects of each version apart
	h.awaitWatches(t, 1)
}

// cut ends all watches as an API server does that restarts.
func (h *hub) cut() {
	h.mu.Lock()
	var all []*following
	for f := range h.following {
		all = append(all, f)
	}
	h.mu.Unlock()
	for _, f := range all {
		f.Stop()
	}
}

func TestWhatWasReadRemainsWhileTheAPIServerIsSilent(t *testing.T) {
	h := newHub(t, 0)
	a := ref("ns", "a")
	h.write(t, a, "1")
	h.start(t)
	h.watcher.Want("one", []Ref{a})
	h.await(t, map[Ref]string{a: "1"})
	h.awaitWatches(t, 1)
	h.set(func(h *hub) { h.refused["ns"] = errDown })
	h.cut()
	before := h.count("ns")
	require.Eventually(t, func() bool { h.clock.Step(time.Second); return h.count("ns") > before+2 }, patience, tick)
	assert.Equal(t, "1", h.value(a))
	h.set(func(h *hub) { delete(h.refused, "ns") })
	h.write(t, a, "2")
	h.pass(t, map[Ref]string{a: "2"})
}

func (h *hub) count(namespace string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lists[namespace]
}

func TestAPermissionThatIsGrantedLaterIsNoticed(t *testing.T) {
	h := newHub(t, 0)
	a, b, c := ref("one", "a"), ref("two", "b"), ref("three", "c")
	for _, of := range []Ref{a, b, c} {
		h.write(t, of, "1")
	}
	h.set(func(h *hub) { h.refused["one"], h.refused["two"] = errForbidden, errForbidden })
	h.start(t)
	h.watcher.Want("one", []Ref{a, b, c})
	h.await(t, map[Ref]string{a: "Forbidden", b: "Forbidden", c: "1"})
	// After a while the pauses are long.
	require.Eventually(t, func() bool { h.clock.Step(5 * time.Minute); return h.count("one") > 12 }, patience, tick)

	h.set(func(h *hub) { h.refused = map[string]error{} })
	h.clock.Step(retryAfter + time.Second)
	h.watcher.Want("two", []Ref{ref("four", "d")}) // it shows that the resource is permitted now
	h.await(t, map[Ref]string{ref("four", "d"): "missing", a: "1", b: "1"})

	h.awaitWatches(t, 4)
	h.set(func(h *hub) { h.refused["two"] = errForbidden })
	h.cut()
	h.pass(t, map[Ref]string{a: "1", b: "Forbidden", c: "1"})
	h.set(func(h *hub) { delete(h.refused, "two") })
	h.pass(t, map[Ref]string{b: "1"})
}

func TestWhateverIsWantedIsWatchedInTheEnd(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			h := newHub(t, 0)
			for i := range 5 {
				h.write(t, ref("ns", strconv.Itoa(i)), "1")
			}
			h.start(t)
			wanted := map[string][]Ref{}
			for range 200 {
				owner := strconv.Itoa(random.IntN(4))
				wanted[owner] = nil
				for range random.IntN(4) {
					wanted[owner] = append(wanted[owner], ref("ns", strconv.Itoa(random.IntN(8))))
				}
				h.watcher.Want(owner, wanted[owner])
			}
			want := map[Ref]string{}
			for i := range 8 {
				want[ref("ns", strconv.Itoa(i))] = "Pending"
			}
			distinct := map[Ref]bool{}
			for _, refs := range wanted {
				for _, of := range refs {
					distinct[of] = true
					want[of] = "1"
					if of.Name > "4" {
						want[of] = "missing"
					}
				}
			}
			h.await(t, want)
			h.awaitWatches(t, len(distinct))
		})
	}
}
