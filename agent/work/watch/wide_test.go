package watch

import (
	"net/http"
	"sync/atomic"
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

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// spread is a watcher with two watches and an owner of one ConfigMap in each of three namespaces. Of those, the API
// server has the ones in a and b, and a thousand of others.
type spread struct {
	*running
	owner Owner
	// denied is why the API server refuses lists of all namespaces; nil when it does not.
	denied atomic.Pointer[error]
	// events are those of all namespaces.
	events *watch.RaceFreeFakeWatcher
}

func in(namespace, name, version string) *metav1.PartialObjectMetadata {
	object := partial(name, version)
	object.Namespace = namespace
	return object
}

// idIn is the identity of the ConfigMap in a namespace.
func idIn(namespace string) manifest.ID {
	return manifest.ID{Resource: "configmaps", Namespace: namespace, Name: "x"}
}

func newSpread(t *testing.T, denied error) *spread {
	t.Helper()
	s := &spread{owner: Owner{Name: "w"}, events: watch.NewRaceFreeFake()}
	s.deny(denied)
	s.running = runWith(t, 2, time.Hour, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
			if denied := s.denied.Load(); a.GetNamespace() == "" && *denied != nil {
				return true, nil, *denied
			}
			for _, namespace := range []string{"a", "b"} {
				if a.GetNamespace() == "" || a.GetNamespace() == namespace {
					list.Items = append(list.Items, runtime.RawExtension{Object: in(namespace, "x", "5")})
				}
			}
			for range 1000 {
				list.Items = append(list.Items, runtime.RawExtension{Object: in("a", "of others", "5")})
			}
			return true, list, nil
		})
		c.PrependWatchReactor("configmaps", func(a clienttesting.Action) (bool, watch.Interface, error) {
			if a.GetNamespace() == "" {
				return true, s.events, nil
			}
			return true, watch.NewRaceFreeFake(), nil
		})
	})
	claims := map[manifest.ID]Key{}
	for _, namespace := range []string{"a", "b", "c"} {
		claims[idIn(namespace)] = watchOf("configmaps", namespace)
	}
	s.store.Claim(s.owner, claims, nil)
	for id := range claims {
		s.store.Record(s.owner, id, State{Object: Object{Exists: true, Version: "5"}})
	}
	return s
}

func (s *spread) deny(err error) { s.denied.Store(&err) }

// drifts waits until the objects in a, b and c drift as given.
func (s *spread) drifts(t *testing.T, want ...Drift) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, namespace := range []string{"a", "b", "c"} {
			if _, drift := s.store.Look(s.owner, idIn(namespace)); drift != want[i] {
				return false
			}
		}
		return true
	}, waitFor, tick)
}

// unwatched counts the objects that no watch covers.
func (s *spread) unwatched() (count int) {
	for _, namespace := range []string{"a", "b", "c"} {
		if s.store.Unwatched(s.owner, idIn(namespace)) {
			count++
		}
	}
	return count
}

var errForbidden = apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)

// Shows: work/watches-wide
func TestAResourceInManyNamespacesIsWatchedInAllOfThem(t *testing.T) {
	s := newSpread(t, nil)
	s.drifts(t, Unchanged, Unchanged, Deleted)
	assert.Zero(t, s.unwatched())
	s.events.Modify(in("b", "x", "11"))
	s.drifts(t, Unchanged, Modified, Deleted)
	s.events.Delete(in("a", "x", "12"))
	s.drifts(t, Deleted, Modified, Deleted)
	assert.Equal(t, Size{Works: 1, Objects: 3, Wanted: 3}, s.store.Size(), "what nobody claims is not remembered")
}

// Shows: work/watches-wide
func TestAWideWatchThatIsRefusedIsTriedOn(t *testing.T) {
	s := newSpread(t, errForbidden)
	require.Eventually(t, func() bool { return s.unwatched() == 1 }, waitFor, tick, "two have watches of their own")
	assert.Equal(t, Size{Works: 1, Objects: 3, Wanted: 3, Beyond: 1}, s.store.Size())
	s.deny(nil)
	require.Eventually(t, func() bool { return s.unwatched() == 0 }, waitFor, tick, "the right was granted")
	s.drifts(t, Unchanged, Unchanged, Deleted)
	s.events.Modify(in("b", "x", "11"))
	s.drifts(t, Unchanged, Modified, Deleted)

	s.deny(errForbidden)
	s.events.Error(&errForbidden.ErrStatus)
	require.Eventually(t, func() bool { return s.unwatched() == 1 }, waitFor, tick, "the right was withdrawn")
}

func TestAWideWatchOfAKindThatIsGoneSaysNothing(t *testing.T) {
	gone := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", cmWatch().Resource.GroupResource(), "", "", 0, true)
	s := newSpread(t, gone)
	s.drifts(t, Modified, Modified, Modified)
	require.Eventually(t, func() bool { return s.unwatched() == 3 }, waitFor, tick)
	assert.Equal(t, 3, s.store.Size().Refused)
	s.deny(nil)
	require.Eventually(t, func() bool { return s.unwatched() == 0 }, waitFor, tick)
}

// wideHandler is the handler of a watch of the ConfigMaps in all namespaces, with its store and what sifts its lists.
func wideHandler(t *testing.T) (*Store, *handler, func() func(*metav1.PartialObjectMetadata) bool) {
	t.Helper()
	c := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	store, watcher := NewWatcher(c, 1, time.Hour, func(Owner) {})
	one := watcher.watchOf(everywhere(cmWatch().Resource))
	h, ok := one.Handler.(*handler)
	require.True(t, ok)
	return store, h, one.Sift
}

func TestWhatIsClaimedWhileAListArrivesIsNotMissingInIt(t *testing.T) {
	store, h, sift := wideHandler(t)
	before, after := Owner{Name: "before"}, Owner{Name: "after"}
	store.Claim(before, claims("a"), nil)
	keep := sift()
	assert.True(t, keep(partial("a", "5")))
	assert.False(t, keep(partial("b", "5")), "nobody claims it")
	store.Claim(after, claims("b"), nil)
	for o, name := range map[Owner]string{before: "a", after: "b"} {
		store.Record(o, thing(name), State{Object: Object{Exists: true, Version: "5"}})
	}
	h.Replace(t.Context(), nil, "10")
	_, drift := store.Look(before, thing("a"))
	assert.Equal(t, Deleted, drift)
	_, drift = store.Look(after, thing("b"))
	assert.Equal(t, Unchanged, drift, "the list was not asked for it")
	sift()
	h.Replace(t.Context(), nil, "11")
	_, drift = store.Look(after, thing("b"))
	assert.Equal(t, Deleted, drift, "the next one was")
}

func TestAWideWatchNoticesAStoreThatWasPutBack(t *testing.T) {
	store, h, sift := wideHandler(t)
	h.Replace(t.Context(), nil, "100")
	o := Owner{Name: "w"}
	store.Claim(o, claims("a"), nil)
	store.Record(o, thing("a"), State{Object: Object{Exists: true, Version: "95"}})
	sift()
	h.Replace(t.Context(), []*metav1.PartialObjectMetadata{partial("a", "40")}, "90")
	_, drift := store.Look(o, thing("a"))
	assert.Equal(t, Modified, drift, "what is there may be anything")
}
