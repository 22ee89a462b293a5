package watch

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

var (
	wideWatch  = everywhere(cmWatch().Resource)
	errNoWatch = apierrors.NewMethodNotSupported(cmWatch().Resource.GroupResource(), "watch")
	errNoKind  = apierrors.NewGenericServerResponse(
		http.StatusNotFound, "list", schema.GroupResource{}, "", "404 page not found", 0, true)
)

// in is the identity of ConfigMap a of a namespace.
func in(namespace string) manifest.ID {
	return manifest.ID{Resource: "configmaps", Namespace: namespace, Name: "a"}
}

// spread claims ConfigMap a in namespaces n0, n1 and so on.
func spread(namespaces int) map[manifest.ID]Key {
	set := map[manifest.ID]Key{}
	for i := range namespaces {
		id := in(fmt.Sprint("n", i))
		set[id] = watchOf("configmaps", id.Namespace)
	}
	return set
}

// partialIn is the metadata of ConfigMap a in a namespace.
func partialIn(namespace, version string) *metav1.PartialObjectMetadata {
	object := partial("a", version)
	object.Namespace = namespace
	return object
}

// cluster answers the lists and watches of ConfigMaps.
type cluster struct {
	mu       sync.Mutex
	version  string
	lists    map[string]int
	events   map[string]*watch.RaceFreeFakeWatcher
	watchErr map[string]error
}

func newCluster() *cluster {
	return &cluster{
		version: "10", lists: map[string]int{}, events: map[string]*watch.RaceFreeFakeWatcher{}, watchErr: map[string]error{},
	}
}

// serve makes a fake client ask the cluster. A narrow list has ConfigMap a, a wide one is cut to one object.
func (c *cluster) serve(client *fake.FakeMetadataClient) {
	client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		namespace := action.GetNamespace()
		c.lists[namespace]++
		list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: c.version}}
		if namespace != "" {
			list.Items = []runtime.RawExtension{{Object: partialIn(namespace, "5")}}
		} else {
			list.Items, list.Continue = []runtime.RawExtension{{Object: partialIn("other", "9")}}, "more"
		}
		return true, list, nil
	})
	client.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, watch.Interface, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		namespace := action.GetNamespace()
		if err := c.watchErr[namespace]; err != nil {
			return true, nil, err
		}
		c.events[namespace] = watch.NewRaceFreeFake()
		return true, c.events[namespace], nil
	})
}

// open returns the events of a namespace, "" for all, nil as long as nobody watches.
func (c *cluster) open(namespace string) *watch.RaceFreeFakeWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[namespace]
}

// set changes the cluster.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// beyond is a work with four namespaces for an agent that may have two watches.
func beyond(t *testing.T, c *cluster) (*running, Owner) {
	t.Helper()
	r, h := runWith(t, 2, time.Hour, c.serve), Owner{Name: "w"}
	r.store.Claim(h, spread(4), nil)
	return r, h
}

// read does what a pass does: it reads each object that may have changed. It returns how many these were.
func (r *running) read(h Owner, version string) (reads int) {
	for id := range spread(4) {
		state, drift := r.store.Look(h, id)
		if state.Requested.IsZero() || drift != Unchanged {
			reads++
			state.Requested, state.Object = epoch, Object{Exists: true, UID: "u", Version: version}
			r.store.Record(h, id, state)
		}
	}
	return reads
}

// Shows: work/watches-wide
func TestAResourceInManyNamespacesIsWatchedInAllOfThem(t *testing.T) {
	c := newCluster()
	r, h := beyond(t, c)
	require.Eventually(t, func() bool { return c.open("") != nil && r.wokenBy(h) == 0 }, waitFor, tick)
	assert.Equal(t, 4, r.read(h, "5"))
	for _, version := range []string{"11", "12", "13"} {
		for id := range spread(4) {
			c.open("").Modify(partialIn(id.Namespace, version))
			require.Eventually(t, func() bool { _, drift := r.store.Look(h, id); return drift == Modified }, waitFor, tick)
		}
		assert.Equal(t, 4, r.read(h, version))
	}
	c.open("").Modify(partialIn("other", "14"))
	c.open("").Delete(partialIn("n3", "15"))
	require.Eventually(t, func() bool { _, drift := r.store.Look(h, in("n3")); return drift == Deleted }, waitFor, tick)
	assert.Equal(t, Size{Works: 1, Objects: 4, Wanted: 4}, r.store.Size())
	for id := range spread(4) {
		assert.False(t, r.store.Unwatched(h, id))
	}
}

func TestWhatHappenedBeforeAWideWatchIsRead(t *testing.T) {
	c := newCluster()
	c.watchErr[""] = errors.New("later")
	r, h := beyond(t, c)
	require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.lists[""] > 0 }, waitFor, tick)
	r.read(h, "5")
	require.Eventually(t, func() bool { return r.read(h, "5") == 0 }, waitFor, tick)
	before := r.wokenBy(h)
	c.set(func() { delete(c.watchErr, "") })
	require.Eventually(t, func() bool { return c.open("") != nil }, waitFor, tick)
	require.Eventually(t, func() bool { return r.wokenBy(h) >= before+3 }, waitFor, tick,
		"the objects of the namespaces without a watch may have changed meanwhile")
	_, drift := r.store.Look(h, in("n3"))
	assert.Equal(t, Modified, drift, "it is not known to be gone, though the list did not have it")
	assert.GreaterOrEqual(t, r.read(h, "5"), 3)
	assert.Zero(t, r.read(h, "5"), "and once is enough")
}

// Shows: work/watches-wide
func TestAWideWatchThatIsRefusedLeavesTheOthersAlone(t *testing.T) {
	c := newCluster()
	c.watchErr[""] = apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)
	r, h := beyond(t, c)
	require.Eventually(t, func() bool { return r.store.Unwatched(h, in("n3")) }, waitFor, tick)
	assert.Equal(t, 3, r.wokenBy(h), "for each namespace without a watch, so that it reads the objects now and then")
	assert.False(t, r.store.Unwatched(h, in("n0")), "there is room for one watch of a namespace")
	assert.Equal(t, 3, r.store.Size().Beyond)
	require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.lists[""] >= 2 }, waitFor, tick)
	assert.Equal(t, 3, r.wokenBy(h), "a list without a watch shows nothing")
	c.set(func() {
		assert.Equal(t, 1, c.lists["n0"], "the watch of a namespace is not disturbed")
		delete(c.watchErr, "")
	})
	require.Eventually(t, func() bool { return !r.store.Unwatched(h, in("n3")) }, waitFor, tick, "it is tried on")
	assert.Zero(t, r.store.Size().Beyond)
	r.store.Claim(h, spread(1), nil)
	require.Eventually(t, func() bool { return c.open("").IsStopped() }, waitFor, tick, "it ends when there is room again")
}

// stores returns a Store with a wide watch beside watches of n0, which covers n1 and n2.
func stores() (*woken, Owner, *handler) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, spread(3), nil)
	l.covered()
	for id := range spread(3) {
		l.Record(h, id, State{Object: Object{Exists: true, Version: "5", UID: "u"}})
	}
	return l, h, &handler{store: l.Store, key: watchOf("configmaps", "n0")}
}

// covered assigns the watches of stores.
func (w *woken) covered() {
	n0, n1, n2 := watchOf("configmaps", "n0"), watchOf("configmaps", "n1"), watchOf("configmaps", "n2")
	w.assign([]scope{only(n0), wideWatch}, map[Key]cover{n0: own, n1: shared, n2: shared})
}

func TestEventsOfAWideWatchAheadOfAListAreNoRestore(t *testing.T) {
	l, h, n0 := stores()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "5")}, "10")
	wide := &wideHandler{handler: handler{store: l.Store, key: wideWatch.Key}, scope: wideWatch}
	wide.Update(t.Context(), partialIn("n0", "30"))
	l.take()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "20")}, "20")
	assert.Empty(t, l.take())
	known, drift := l.Look(h, in("n0"))
	assert.Equal(t, Modified, drift)
	assert.Equal(t, "30", known.Observed.Version, "the newest event counts")
	assert.Equal(t, "5", known.Object.Version, "nobody restored the API server")
}

func TestAKeyThatAWideWatchTakesOverMissesNothing(t *testing.T) {
	l, h, n0 := stores()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "5")}, "10")
	wide := &wideHandler{handler: handler{store: l.Store, key: wideWatch.Key}, scope: wideWatch}
	l.take()
	wide.Update(t.Context(), partialIn("n0", "12"))
	l.assign([]scope{wideWatch}, map[Key]cover{
		watchOf("configmaps", "n0"): shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	assert.Equal(t, []Owner{h}, l.take(), "the change that the watch of the namespace had yet to show")
	_, drift := l.Look(h, in("n0"))
	assert.Equal(t, Modified, drift)
	assert.False(t, l.refuse(only(n0.key), "forbidden"), "the watch that ends has no say any more")
	assert.False(t, l.Unwatched(h, in("n0")))
}

func TestRefusalsOfAWideWatchWakeOnce(t *testing.T) {
	l, h, _ := stores()
	assert.True(t, l.refuse(wideWatch, "forbidden"))
	assert.Equal(t, []Owner{h, h}, l.take())
	assert.True(t, l.refuse(wideWatch, "not found"))
	assert.Empty(t, l.take(), "they read their objects already")
	l.doubt(wideWatch)
	assert.Equal(t, []Owner{h, h}, l.take(), "the kind may be gone with the objects")
	for id := range spread(3) {
		known, _ := l.Look(h, id)
		l.Record(h, id, known)
	}
	for range 3 {
		l.doubt(wideWatch)
		l.refuse(wideWatch, "not found")
		l.covered()
	}
	assert.Empty(t, l.take(), "nothing is new")
	l.follow(wideWatch, "")
	assert.Empty(t, l.take(), "it goes on where it was")
	assert.False(t, l.Unwatched(h, in("n1")))
	l.refuse(wideWatch, "forbidden")
	l.take()
	l.assign([]scope{wideWatch}, map[Key]cover{
		watchOf("configmaps", "n0"): shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	assert.Equal(t, []Owner{h}, l.take(), "a key whose watch ends for one that is refused")
	assert.True(t, l.Unwatched(h, in("n0")))
}

func TestAWideWatchWhoseKindIsGoneDoubtsItsObjects(t *testing.T) {
	woken := 0
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), 2, time.Hour, func(Owner) { woken++ })
	h := Owner{Name: "w"}
	store.Claim(h, spread(4), nil)
	w.wanted(t.Context(), func(scope) bool { return false })
	one := w.wideWatchOf(wideWatch)
	for id := range spread(4) {
		store.Record(h, id, State{Object: Object{Exists: true, Version: "5"}})
	}
	one.Ended(errNoWatch)
	assert.Equal(t, 3, woken)
	one.Ended(errNoKind)
	assert.Equal(t, 6, woken)
	one.Silent(assert.AnError)
	assert.Equal(t, 6, woken)
}

// Shows: work/restored-cache
func TestAWideWatchNoticesAStoreThatWasPutBack(t *testing.T) {
	for name, tc := range map[string]struct {
		version  string
		restored bool
	}{
		"a store that goes on":         {"40", false},
		"a store that is where it was": {"30", false},
		"a store that went back":       {"29", true},
		"versions without order":       {"x", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
			c.serve(client)
			c.version = tc.version
			store, w := NewWatcher(client, 2, time.Hour, func(Owner) {})
			h := Owner{Name: "w"}
			store.Claim(h, spread(4), nil)
			w.wanted(t.Context(), func(scope) bool { return false })
			for id := range spread(4) {
				store.Record(h, id, State{Object: Object{Exists: true, UID: "u", Version: "5"}})
			}
			store.Observe(in("n1"), Event{UID: "u", Version: "20"})
			store.Record(h, in("n2"), State{Object: Object{Exists: true, UID: "u", Version: "30"}})
			_, err := w.wideWatchOf(wideWatch).Source.List(t.Context(), metav1.ListOptions{Limit: 1})
			require.NoError(t, err)
			for id := range spread(4) {
				known, drift := store.Look(h, id)
				if id == in("n1") && !tc.restored {
					assert.Equal(t, Modified, drift)
					continue
				}
				assert.Equal(t, tc.restored, drift == Modified, "%s may be anything", id)
				assert.Equal(t, tc.restored, known.Object.Version == "", id)
			}
		})
	}
}
