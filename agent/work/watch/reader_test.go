package watch

import (
	"context"
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

func nsThing(namespace string) manifest.ID {
	return manifest.ID{Resource: "configmaps", Namespace: namespace, Name: "a"}
}

func listOf(version string, objects ...runtime.Object) *metav1.List {
	l := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, o := range objects {
		l.Items = append(l.Items, runtime.RawExtension{Object: o})
	}
	return l
}

// A narrow watch goes on while the wide one lists. An event of the narrow one that is newer than the snapshot of the
// slow (paged) wide list must not be taken for a restored API server.
func TestReaderANarrowEventDuringAWideListIsNoRestore(t *testing.T) {
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	narrowEvents := map[string]*watch.FakeWatcher{
		"ns-0": watch.NewFake(), "ns-1": watch.NewFake(), "ns-2": watch.NewFake(), "": watch.NewFake(),
	}
	r := runWith(t, 3, time.Hour, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if ns := action.GetNamespace(); ns != "" {
				return true, listOf("10", inNamespace(ns, "a", "5")), nil
			}
			all := listOf("15", inNamespace("ns-0", "a", "5"), inNamespace("ns-1", "a", "5"), inNamespace("ns-2", "a", "5"),
				inNamespace("ns-3", "a", "5"))
			asked <- struct{}{}
			<-goOn // the other pages take their time
			return true, all, nil
		})
		c.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, watch.Interface, error) {
			return true, narrowEvents[action.GetNamespace()], nil
		})
	})
	h := Owner{Name: "w"}
	r.store.Claim(h, many(3), nil)
	known := State{Object: Object{Exists: true, UID: "u", Version: "5"}}
	listed := func() bool {
		for _, ns := range []string{"ns-0", "ns-1", "ns-2"} {
			if s, _ := r.store.Look(h, nsThing(ns)); s.Observed == nil {
				return false
			}
		}
		return true
	}
	require.Eventually(t, listed, waitFor, tick)
	r.store.Claim(h, many(4), nil)
	<-asked
	for _, ns := range []string{"ns-0", "ns-1", "ns-2", "ns-3"} {
		s, _ := r.store.Look(h, nsThing(ns))
		known := known
		known.Observed = s.Observed
		r.store.Record(h, nsThing(ns), known)
	}
	// The narrow watch of ns-0 goes on as far as there is room, and shows a change after the snapshot.
	narrowEvents["ns-0"].Modify(inNamespace("ns-0", "a", "20"))
	require.Eventually(t, func() bool {
		s, _ := r.store.Look(h, nsThing("ns-0"))
		return s.Observed.Version == "20"
	}, waitFor, tick)
	require.Equal(t, 1, r.wokenBy(h))
	close(goOn)
	require.Eventually(t, func() bool {
		s, _ := r.store.Look(h, nsThing("ns-3"))
		return s.Observed != nil
	}, waitFor, tick)
	for _, ns := range []string{"ns-1", "ns-2", "ns-3"} {
		s, drift := r.store.Look(h, nsThing(ns))
		assert.Equal(t, Unchanged, drift, "%s did not change", ns)
		assert.Equal(t, "5", s.Object.Version, "%s: nobody restored the API server", ns)
	}
	s, _ := r.store.Look(h, nsThing("ns-0"))
	assert.Equal(t, "20", s.Observed.Version, "the newest event counts")
}

// The API server allows to list in all namespaces but not to watch there (a ClusterRole with get and list, and Roles
// with watch; or with everywhere an aggregated API without watch).
func flapping(t *testing.T, narrowToo bool) (narrowLists map[string]int, woken int) {
	t.Helper()
	var mu sync.Mutex
	lists, wide := map[string]int{}, 0
	r := runWith(t, 2, time.Hour, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			if ns := action.GetNamespace(); ns != "" {
				lists[ns]++
			} else {
				wide++
			}
			return true, listOf("10"), nil
		})
		c.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, watch.Interface, error) {
			if action.GetNamespace() == "" || narrowToo {
				time.Sleep(20 * time.Millisecond) // a round trip
				return true, nil, apierrors.NewMethodNotSupported(cmWatch().Resource.GroupResource(), "watch")
			}
			return true, watch.NewFake(), nil
		})
	})
	h := Owner{Name: "w"}
	r.store.Claim(h, many(3), nil)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return wide == 4 }, 20*time.Second, tick) // 0 s, 1 s, 3 s, 7 s
	time.Sleep(200 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	return lists, r.wokenBy(h)
}

func TestReaderListWithoutWatchDoesNotFlap(t *testing.T) {
	lists, woken := flapping(t, false)
	for ns, n := range lists {
		assert.Equal(t, 1, n, "the watch of %s works and goes on", ns)
	}
	assert.LessOrEqual(t, woken, 1, "the owner of what is beyond is woken once")
}

func TestReaderAKindWithoutWatchBacksOff(t *testing.T) {
	lists, woken := flapping(t, true)
	for ns, n := range lists {
		assert.LessOrEqual(t, n, 4, "the narrow watch of %s is refused for 7 s: 0 s, 1 s, 3 s, 7 s", ns)
	}
	t.Log(lists, woken)
}

func kindGoneError() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// A wide watch that was refused and whose kind goes away then.
func TestReaderAKindThatGoesWhileItsWideWatchIsRefusedWakesOnce(t *testing.T) {
	woken := 0
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), 2, time.Hour, func(Owner) { woken++ })
	h := Owner{Name: "w"}
	store.Claim(h, many(4), nil)
	wide := everywhere(watchOf("configmaps", "").Resource)
	running := runs([]scope{wide})
	one := w.watchOf(wide)
	one.Ended(apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil))
	w.wanted(t.Context(), running)
	one.Ended(kindGoneError())
	w.wanted(t.Context(), running)
	one.Ended(kindGoneError())
	w.wanted(t.Context(), running)
	before := woken
	for range 5 {
		one.Ended(kindGoneError())     // every five minutes
		w.wanted(t.Context(), running) // whenever any claim changes
	}
	assert.Equal(t, before, woken, "nothing new")
}

// A narrow watch that ends in a refusal just after the wide one listed.
func TestReaderARefusalOfANarrowWatchThatTheWideOneReplacesDoesNotStay(t *testing.T) {
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), 2, time.Hour, func(Owner) {})
	h := Owner{Name: "w"}
	store.Claim(h, many(3), nil)
	wide := everywhere(watchOf("configmaps", "").Resource)
	running := runs([]scope{wide})
	w.wanted(t.Context(), running)
	w.watchOf(wide).Handler.Replace(t.Context(), nil, "10")
	w.watchOf(only(watchOf("configmaps", "ns-0"))).Silent(assert.AnError)
	w.wanted(t.Context(), running)
	assert.False(t, store.Unwatched(h, nsThing("ns-0")), "the wide watch covers it")
}

// A narrow watch that was silent, and a wide one that lists once and is refused then.
func TestReaderAMarkIsNotLost(t *testing.T) {
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), 2, time.Hour, func(Owner) {})
	h := Owner{Name: "w"}
	store.Claim(h, many(3), nil)
	wide := everywhere(watchOf("configmaps", "").Resource)
	one := w.watchOf(wide)
	one.Ended(apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil))
	chosen := w.wanted(t.Context(), runs([]scope{wide}))
	narrow := w.watchOf(chosen[0])
	id := nsThing(chosen[0].Namespace)
	narrow.Silent(assert.AnError) // told once
	require.True(t, store.Unwatched(h, id))
	one.Handler.Replace(t.Context(), nil, "10")
	one.Ended(apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)) // before the Set looked
	again := w.wanted(t.Context(), runs(chosen))
	require.Contains(t, again, chosen[0])
	assert.True(t, store.Unwatched(h, id), "its watch still shows nothing, and will not say so again")
}

func TestReaderAWideWatchForOneNamespaceEnds(t *testing.T) {
	a := watchOf("configmaps", "a")
	wide := everywhere(a.Resource)
	listed := map[schema.GroupVersionResource]fare{a.Resource: works}
	chosen, _ := choose(map[Key]int{a: 1}, runs([]scope{wide}), listed, 1)
	assert.Equal(t, narrow(a), chosen, "one namespace needs one watch either way")
}

var _ = context.Background

// As the first test, with an object that is created while the wide list arrives.
func TestReaderAnObjectCreatedDuringAWideListIsNotTakenAsDeleted(t *testing.T) {
	store, w := NewWatcher(fake.NewSimpleMetadataClient(fake.NewTestScheme()), 3, time.Hour, func(Owner) {})
	h := Owner{Name: "w"}
	store.Claim(h, many(4), nil)
	wide := w.watchOf(everywhere(watchOf("configmaps", "").Resource))
	narrow := w.watchOf(only(watchOf("configmaps", "ns-0")))
	narrow.Handler.Replace(t.Context(), []*metav1.PartialObjectMetadata{inNamespace("ns-0", "a", "5")}, "10")
	_ = wide.Sift() // the first page arrives; the snapshot is of version 15
	store.Record(h, nsThing("ns-3"), State{Object: Object{Exists: true, UID: "u", Version: "16"}}) // the work creates it
	narrow.Handler.Update(t.Context(), inNamespace("ns-0", "a", "20"))
	wide.Handler.Replace(t.Context(), []*metav1.PartialObjectMetadata{inNamespace("ns-0", "a", "5")}, "15")
	_, drift := store.Look(h, nsThing("ns-3"))
	assert.NotEqual(t, Deleted, drift, "it was created after the snapshot of the list, and exists")
}
