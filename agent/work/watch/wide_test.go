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

// open returns the events of all namespaces, nil as long as nobody watches them.
func (c *cluster) open() *watch.RaceFreeFakeWatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[""]
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
	require.Eventually(t, func() bool { return c.open() != nil && r.wokenBy(h) == 0 }, waitFor, tick)
	assert.Equal(t, 4, r.read(h, "5"))
	for _, version := range []string{"11", "12", "13"} {
		for id := range spread(4) {
			c.open().Modify(partialIn(id.Namespace, version))
			require.Eventually(t, func() bool { _, drift := r.store.Look(h, id); return drift == Modified }, waitFor, tick)
		}
		assert.Equal(t, 4, r.read(h, version))
	}
	c.open().Modify(partialIn("other", "14"))
	c.open().Delete(partialIn("n3", "15"))
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
	require.Eventually(t, func() bool { return c.open() != nil }, waitFor, tick)
	require.Eventually(t, func() bool { return r.wokenBy(h) >= before+2 }, waitFor, tick,
		"the objects of the namespaces without a watch may have changed meanwhile")
	_, drift := r.store.Look(h, in("n3"))
	assert.Equal(t, Modified, drift, "it is not known to be gone, though the list did not have it")
	assert.Equal(t, 2, r.read(h, "5"), "the others have watches of their own")
	assert.Zero(t, r.read(h, "5"), "and once is enough")
}

// Shows: work/watches-wide
func TestAWideWatchThatIsRefusedLeavesTheOthersAlone(t *testing.T) {
	c := newCluster()
	c.watchErr[""] = apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)
	r, h := beyond(t, c)
	require.Eventually(t, func() bool { return r.store.Unwatched(h, in("n3")) }, waitFor, tick)
	r.awaitWoken(t, h, 2, "for each namespace without a watch, so that it reads the objects now and then")
	assert.False(t, r.store.Unwatched(h, in("n0")), "there is room for two watches of a namespace")
	assert.False(t, r.store.Unwatched(h, in("n1")))
	assert.Equal(t, 2, r.store.Size().Beyond)
	require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.lists[""] >= 2 }, waitFor, tick)
	r.awaitWoken(t, h, 2, "a list without a watch shows nothing")
	c.set(func() {
		assert.Equal(t, 1, c.lists["n0"], "the watch of a namespace is not disturbed")
		delete(c.watchErr, "")
	})
	require.Eventually(t, func() bool { return !r.store.Unwatched(h, in("n3")) }, waitFor, tick, "it is tried on")
	assert.Zero(t, r.store.Size().Beyond)
	r.store.Claim(h, nil, nil)
	require.Eventually(t, func() bool { return c.open().IsStopped() }, waitFor, tick, "it ends with the last key")
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
	l.follow(wideWatch, "10", epoch)
	l.take()
	wide.Update(t.Context(), partialIn("n0", "12"))
	l.assign([]scope{wideWatch}, map[Key]cover{
		watchOf("configmaps", "n0"): shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	assert.Equal(t, []Owner{h}, l.take(), "the change that the watch of the namespace had yet to show")
	_, drift := l.Look(h, in("n0"))
	assert.Equal(t, Modified, drift)
	assert.False(t, l.refuse(only(n0.key), errForbidden), "the watch that ends has no say any more")
	assert.False(t, l.Unwatched(h, in("n0")))
}

func TestRefusalsOfAWideWatchWakeOnce(t *testing.T) {
	l, h, _ := stores()
	assert.True(t, l.refuse(wideWatch, errForbidden))
	assert.Equal(t, []Owner{h, h}, l.take())
	assert.True(t, l.refuse(wideWatch, errNotFound))
	assert.Empty(t, l.take(), "they read their objects already")
	l.doubt(wideWatch)
	assert.Equal(t, []Owner{h, h}, l.take(), "the kind may be gone with the objects")
	for id := range spread(3) {
		known, _ := l.Look(h, id)
		known.Object = Object{}
		l.Record(h, id, known)
	}
	for range 3 {
		l.doubt(wideWatch)
		l.refuse(wideWatch, errNotFound)
		l.covered()
	}
	assert.Empty(t, l.take(), "nothing is new")
	l.follow(wideWatch, "", epoch)
	assert.Empty(t, l.take(), "it goes on where it was")
	assert.False(t, l.Unwatched(h, in("n1")))
	l.refuse(wideWatch, errForbidden)
	l.take()
	l.assign([]scope{wideWatch}, map[Key]cover{
		watchOf("configmaps", "n0"): shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	assert.Equal(t, []Owner{h, h}, l.take(), "a key whose watch ends, which had shown nothing, for one that is refused")
	assert.True(t, l.Unwatched(h, in("n0")))
}

func TestAWideWatchWhoseKindIsGoneDoubtsItsObjects(t *testing.T) {
	woken := 0
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), Bounds{2, time.Hour}, func(Owner) { woken++ })
	h := Owner{Name: "w"}
	store.Claim(h, spread(4), nil)
	w.wanted(t.Context(), func(scope) bool { return false })
	one := w.wideWatchOf(wideWatch)
	for id := range spread(4) {
		store.Record(h, id, State{Object: Object{Exists: true, Version: "5"}})
	}
	one.Ended(errNoWatch)
	assert.Equal(t, 2, woken)
	one.Ended(errNoKind)
	assert.Equal(t, 4, woken)
	one.Silent(assert.AnError)
	assert.Equal(t, 4, woken)
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
			store, w := NewWatcher(client, Bounds{2, time.Hour}, func(Owner) {})
			h := Owner{Name: "w"}
			store.Claim(h, spread(4), nil)
			w.wanted(t.Context(), func(scope) bool { return false })
			for id := range spread(4) {
				store.Record(h, id, State{Object: Object{Exists: true, UID: "u", Version: "5"}})
			}
			store.Observe(in("n1"), Event{UID: "u", Version: "20"})
			store.Record(h, in("n2"), State{Object: Object{Exists: true, UID: "u", Version: "30"}})
			run := w.wideWatchOf(wideWatch)
			_, err := run.Source.List(t.Context(), metav1.ListOptions{Limit: 1})
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
			store.Record(h, in("n3"), State{Object: Object{Exists: true, UID: "u", Version: "28"}})
			run.Source.WentBack(t.Context()) // the watch itself had seen a later state
			known, _ := store.Look(h, in("n3"))
			assert.Equal(t, tc.restored, known.Object.Version == "28", "one list tells of a restore once")
		})
	}
}

// A wide watch that fails while all keys have watches of their own says so once, and keys may come to need it later.
func TestARefusalOfAWideWatchThatNoKeyNeedsIsKept(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	n0 := watchOf("configmaps", "n0")
	l.Claim(h, spread(1), nil)
	l.assign([]scope{only(n0), wideWatch}, map[Key]cover{n0: own})
	l.refuse(wideWatch, errAway)
	assert.Empty(t, l.take())
	l.Claim(h, spread(2), nil)
	n1 := watchOf("configmaps", "n1")
	l.assign([]scope{only(n0), wideWatch}, map[Key]cover{n0: own, n1: shared})
	assert.Equal(t, []Owner{h}, l.take())
	assert.True(t, l.Unwatched(h, in("n1")))
}

func TestARefusalOutlivesAKeyThatIsDroppedForAMoment(t *testing.T) {
	l, a, b := newWoken(), Owner{Name: "a"}, Owner{Name: "b"}
	one := []scope{only(cmWatch())}
	l.Claim(a, claims("x"), nil)
	l.assign(one, map[Key]cover{cmWatch(): own})
	l.refuse(one[0], errors.New("it fails on, and does not say so again"))
	l.Forget(a)
	l.Claim(b, claims("x"), nil)
	l.assign(one, map[Key]cover{cmWatch(): own})
	assert.True(t, l.Unwatched(b, thing("x")))
	l.Forget(b)
	l.assign(nil, nil)
	assert.Empty(t, l.refused)
}

func TestALaggingListOfANewWatchIsNoRestore(t *testing.T) {
	l, h, n0 := stores()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "5")}, "30")
	l.assign([]scope{wideWatch}, map[Key]cover{
		n0.key: shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	l.Record(h, in("n0"), State{Object: Object{Exists: true, UID: "u2", Version: "28", Sole: true}, Requested: epoch})
	l.covered() // a watch of its own again, which another API server of the cluster answers
	again := &handler{store: l.Store, key: n0.key}
	again.Replace(t.Context(), nil, "27")
	known, drift := l.Look(h, in("n0"))
	assert.Equal(t, "28", known.Object.Version, "nobody restored the API server")
	assert.NotEqual(t, Deleted, drift, "the object exists: it was written after that list")
}

func TestWithoutOrderOfVersionsAnEventOfAWideWatchIsADoubt(t *testing.T) {
	l, h, n0 := stores()
	wide := &wideHandler{handler: handler{store: l.Store, key: wideWatch.Key}, scope: wideWatch}
	n0.Delete(t.Context(), partialIn("n0", "x7"))
	n0.Update(t.Context(), partialIn("n0", "x8"))
	known, _ := l.Look(h, in("n0"))
	known.Object = Object{Exists: true, UID: "u", Version: "x8"}
	l.Record(h, in("n0"), known)
	wide.Delete(t.Context(), partialIn("n0", "x7")) // the wide watch is behind
	_, drift := l.Look(h, in("n0"))
	assert.Equal(t, Modified, drift, "the object exists")
}

func TestAWideWatchThatBeginsLeavesKeysWithTheirOwnWatchAlone(t *testing.T) {
	l, h, n0 := stores()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "5")}, "10")
	l.take()
	l.follow(wideWatch, "20", epoch)
	assert.Equal(t, []Owner{h, h}, l.take())
	_, drift := l.Look(h, in("n0"))
	assert.Equal(t, Unchanged, drift)
	l.refuse(only(n0.key), errors.New("it keeps failing"))
	l.take()
	l.follow(wideWatch, "30", epoch)
	assert.Len(t, l.take(), 3, "nothing shows what happened there either")
}

func TestAWideWatchIsKeptForAWhile(t *testing.T) {
	l, _, _ := stores()
	assert.Equal(t, untried, l.fare(wideWatch.Resource, epoch))
	moves := l.moves
	l.follow(wideWatch, "20", epoch)
	l.follow(wideWatch, "30", epoch.Add(time.Minute))
	assert.Equal(t, moves+1, l.moves, "watches are chosen again when it works")
	assert.Equal(t, works, l.fare(wideWatch.Resource, epoch.Add(leastWide-1)))
	assert.Equal(t, settled, l.fare(wideWatch.Resource, epoch.Add(leastWide)))
	l.refuse(wideWatch, errForbidden)
	assert.Equal(t, fails, l.fare(wideWatch.Resource, epoch.Add(leastWide)))
	assert.Equal(t, moves+2, l.moves)
	l.assign(nil, nil)
	assert.Equal(t, untried, l.fare(wideWatch.Resource, epoch))
}

// A look at all versions holds up all passes, so it looks at each claim once.
func TestALookAtAllVersionsLooksAtEachClaimOnce(t *testing.T) {
	l := newWoken()
	for n := range 10 {
		set := map[manifest.ID]Key{}
		for id, key := range spread(200) {
			id.Name = fmt.Sprint("a", n)
			set[id] = key
		}
		l.Claim(Owner{Name: fmt.Sprint("w", n)}, set, nil)
	}
	looks := 0
	assert.Len(t, l.claimedIn(func(Key) bool { looks++; return true }), 2000)
	assert.Equal(t, 2000, looks)
}

func TestAnEndedWatchLeavesNoVersionBehind(t *testing.T) {
	l, _, n0 := stores()
	l.Claim(Owner{Name: "w"}, nil, nil)
	n0.Replace(t.Context(), nil, "10")
	n0.Update(t.Context(), partialIn("n0", "11"))
	assert.Empty(t, l.versions)
}

func TestWhatTheOwnWatchHadYetToShowIsRead(t *testing.T) {
	l, h, n0 := stores()
	n0.Replace(t.Context(), []*metav1.PartialObjectMetadata{partialIn("n0", "5")}, "10")
	l.follow(wideWatch, "20", epoch) // what happened from 10 to 20 is shown by neither
	l.take()
	l.assign([]scope{wideWatch}, map[Key]cover{
		watchOf("configmaps", "n0"): shared, watchOf("configmaps", "n1"): shared, watchOf("configmaps", "n2"): shared,
	})
	assert.Equal(t, []Owner{h}, l.take())
	_, drift := l.Look(h, in("n0"))
	assert.Equal(t, Modified, drift)
}
