package watch

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cmWatch is the watch of ConfigMaps in ns.
func cmWatch() Key {
	return Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "ns"}
}

// thing is the identity of a ConfigMap in ns.
func thing(name string) manifest.ID {
	return manifest.ID{Resource: "configmaps", Namespace: "ns", Name: name}
}

// woken is a Store that remembers whom it woke.
type woken struct {
	*Store
	owners []Owner
	moves  int
}

func newWoken() *woken {
	w := &woken{}
	w.Store = NewStore(func(h Owner) { w.owners = append(w.owners, h) }, func() { w.moves++ })
	return w
}

// take returns whom the Store woke since the last time.
func (w *woken) take() []Owner {
	taken := w.owners
	w.owners = nil
	return taken
}

// claims makes a set of claims on ConfigMaps in ns.
func claims(names ...string) map[manifest.ID]Key {
	set := map[manifest.ID]Key{}
	for _, name := range names {
		set[thing(name)] = cmWatch()
	}
	return set
}

func TestStoreIgnoresWhatItWroteItself(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a"), nil)
	rec, drift := l.Look(h, thing("a"))
	assert.Equal(t, Unchanged, drift)
	assert.Zero(t, rec)

	l.Observe(thing("a"), Event{Version: "10", UID: "u"})
	assert.Empty(t, l.take(), "before the first request is noted, no event is news")
	l.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10", UID: "u"}})
	assert.Empty(t, l.take(), "our own write comes back as an event")
	l.Observe(thing("a"), Event{Version: "9", UID: "u"})
	assert.Empty(t, l.take(), "an older event is no news")

	l.Observe(thing("a"), Event{Version: "11", UID: "u"})
	assert.Equal(t, []Owner{h}, l.take(), "a newer one is")
	_, drift = l.Look(h, thing("a"))
	assert.Equal(t, Modified, drift)
	l.Observe(thing("a"), Event{Deleted: true, Version: "12"})
	assert.Equal(t, []Owner{h}, l.take())
	_, drift = l.Look(h, thing("a"))
	assert.Equal(t, Deleted, drift)
}

func TestStoreWakesForWhatCameWhileARequestRan(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a"), nil)
	rec, _ := l.Look(h, thing("a"))
	l.Observe(thing("a"), Event{Version: "10"})
	l.Observe(thing("a"), Event{Deleted: true, Version: "12"})
	rec.Object = Object{Exists: true, Version: "10"}
	l.Record(h, thing("a"), rec)
	assert.Equal(t, []Owner{h}, l.take(), "it was deleted between our write and its note")
}

func TestStoreTrustsARequestOverEarlierEvents(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a"), nil)
	l.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "x1"}})
	l.Observe(thing("a"), Event{Version: "x2"})
	assert.Equal(t, []Owner{h}, l.take(), "versions without order are news when they differ")
	rec, _ := l.Look(h, thing("a"))
	rec.Object.Version = "x3"
	l.Record(h, thing("a"), rec)
	_, drift := l.Look(h, thing("a"))
	assert.Equal(t, Unchanged, drift, "what was known before the request is older, order or not")
}

func TestStoreTellsStatusFromContent(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a"), nil)
	l.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10", UID: "u", Generation: 1, Meta: 7}})
	l.Observe(thing("a"), Event{Version: "11", UID: "u", Generation: 1, Meta: 7})
	assert.Empty(t, l.take(), "a status that nobody reads is no news")
	rec, drift := l.Look(h, thing("a"))
	assert.Equal(t, Unchanged, drift)
	assert.Equal(t, "11", rec.Object.Version)

	rec.Feedback = &Feedback{Rules: manifest.Digest{1}}
	l.Record(h, thing("a"), rec)
	l.Observe(thing("a"), Event{Version: "12", UID: "u", Generation: 1, Meta: 7})
	assert.Equal(t, []Owner{h}, l.take())
	_, drift = l.Look(h, thing("a"))
	assert.Equal(t, StatusOnly, drift)

	for name, s := range map[string]Event{
		"another generation": {Version: "13", UID: "u", Generation: 2, Meta: 7},
		"other metadata":     {Version: "13", UID: "u", Generation: 1, Meta: 8},
		"another object":     {Version: "13", UID: "v", Generation: 1, Meta: 7},
		"no generations":     {Version: "13", UID: "u", Meta: 7},
	} {
		assert.Equal(t, Modified, rec.drift(&s), name)
	}
	rec.Failed = &Failure{}
	assert.Equal(t, Modified, rec.drift(&Event{Version: "13", UID: "u", Generation: 1, Meta: 7}),
		"after a failure any move of the object is a chance")
}

func TestNewsAboutAbsence(t *testing.T) {
	absent, there := State{Requested: epoch}, State{Object: Object{Exists: true, Version: "10"}}
	assert.Equal(t, Unchanged, absent.drift(&Event{Deleted: true, Version: "9"}))
	assert.Equal(t, Modified, absent.drift(&Event{Version: "9"}), "it came")
	assert.Equal(t, Unchanged, there.drift(&Event{Deleted: true, Version: "9"}), "it was gone before we made it")
	assert.Equal(t, Deleted, there.drift(&Event{Deleted: true, Version: "10"}))
	assert.Equal(t, Deleted, there.drift(&Event{Deleted: true, Version: "odd"}))
	assert.Equal(t, Unchanged, there.drift(nil))
}

// Shows: work/store-shared, work/store-forgets
func TestStoreHoldsObjectsOfSeveralWorks(t *testing.T) {
	l, one, two := newWoken(), Owner{Name: "one"}, Owner{Name: "two"}
	l.Claim(one, claims("a", "b"), nil)
	l.Claim(two, claims("a"), nil)
	l.Record(one, thing("a"), State{Object: Object{Exists: true, Version: "10"}})
	l.Record(two, thing("a"), State{Object: Object{Exists: true, Version: "11"}})
	assert.Equal(t, 1, l.moves, "one watch serves both")
	l.Observe(thing("a"), Event{Version: "11"})
	assert.Equal(t, []Owner{one}, l.take(), "only whose knowledge is older is woken")

	l.Claim(one, nil, nil)
	l.Observe(thing("a"), Event{Version: "12"})
	assert.Equal(t, []Owner{two}, l.take())
	assert.Len(t, l.wanted(), 1)
	l.Claim(two, nil, nil)
	assert.Empty(t, l.wanted())
	assert.Empty(t, l.objects)
	assert.Empty(t, l.owners)
	assert.Equal(t, 2, l.moves)
	l.Observe(thing("a"), Event{Version: "13"})
	l.Record(two, thing("a"), State{})
	assert.Empty(t, l.objects, "what nobody holds is not remembered")
}

func TestStoreListing(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a", "b", "c"), nil)
	for _, name := range []string{"a", "b", "c"} {
		l.Record(h, thing(name), State{Object: Object{Exists: true, Version: "10"}})
	}
	l.replace(cmWatch(), map[manifest.ID]Event{thing("a"): {Version: "10"}, thing("x"): {Version: "3"}}, "9")
	assert.Empty(t, l.take(), "a list from before our writes says nothing")
	l.replace(cmWatch(), map[manifest.ID]Event{thing("a"): {Version: "10"}, thing("b"): {Version: "11"}}, "12")
	assert.Equal(t, []Owner{h, h}, l.take(), "b changed and c is gone")
	_, drift := l.Look(h, thing("c"))
	assert.Equal(t, Deleted, drift)
}

func TestAStoreThatWasPutBackIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		// seen is the version of what the watch showed before, put the version of the list after.
		seen, put string
		woken     bool
	}{
		"a list that goes on":          {"500", "501", false},
		"a list that is the same":      {"500", "500", false},
		"a list older than the list":   {"", "90", true},
		"a list older than an event":   {"500", "300", true},
		"versions that have no order":  {"x", "y", false},
		"a list that does not say one": {"500", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := newWoken(), Owner{Name: "w"}
			l.Claim(h, claims("a", "b"), nil)
			was := Event{Version: "50", UID: "u", Generation: 3, Meta: 7}
			l.replace(cmWatch(), map[manifest.ID]Event{thing("a"): was, thing("b"): was}, "100")
			known := State{Object: Object{Exists: true, Version: "50", UID: "u", Generation: 3, Meta: 7}}
			for _, name := range []string{"a", "b"} {
				rec, _ := l.Look(h, thing(name))
				known.Observed = rec.Observed
				l.Record(h, thing(name), known)
			}
			if c.seen != "" {
				next := was
				next.Version = c.seen
				l.observeAt(cmWatch(), thing("b"), next)
			}
			l.take()
			// What the restored store has is older than what was seen, in the same generation.
			back := was
			back.Version = "40"
			l.replace(cmWatch(), map[manifest.ID]Event{thing("a"): back}, c.put)
			_, drift := l.Look(h, thing("a"))
			if !c.woken {
				assert.Equal(t, Unchanged, drift)
				return
			}
			assert.Contains(t, l.take(), h)
			assert.Equal(t, Modified, drift, "what is there may be anything")
			_, drift = l.Look(h, thing("b"))
			assert.Equal(t, Deleted, drift, "what is not there is gone")

			rec, _ := l.Look(h, thing("a"))
			l.Record(h, thing("a"), State{Observed: rec.Observed, Object: Object{Exists: true, Version: "41", UID: "u", Generation: 3}})
			l.take()
			l.replace(cmWatch(), map[manifest.ID]Event{thing("a"): {Version: "41", UID: "u", Generation: 3}}, "600")
			_, drift = l.Look(h, thing("a"))
			assert.Equal(t, Unchanged, drift, "from then on versions count again")
		})
	}
}

func TestAWatchOfAKindThatIsNotServedSaysNothing(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, claims("a"), nil)
	l.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10", UID: "u"}})
	l.doubt(only(cmWatch()))
	assert.Equal(t, []Owner{h}, l.take())
	rec, drift := l.Look(h, thing("a"))
	assert.Equal(t, Modified, drift, "the object is not known to be gone")
	l.Record(h, thing("a"), State{Observed: rec.Observed, Object: Object{Exists: true, Version: "10", UID: "u"}})
	l.doubt(only(cmWatch()))
	assert.Equal(t, []Owner{h}, l.take(), "it was there, and may have gone with its kind since")
	l.doubt(only(cmWatch()))
	assert.Empty(t, l.take(), "they will read it")
	rec, _ = l.Look(h, thing("a"))
	l.Record(h, thing("a"), State{Observed: rec.Observed})
	l.doubt(only(cmWatch()))
	assert.Empty(t, l.take(), "what is not there cannot go")
}

func TestStoreRefusal(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	assert.True(t, l.Unwatched(h, thing("a")), "what is not claimed is not watched")
	l.Claim(h, claims("a"), nil)
	assert.False(t, l.Unwatched(h, thing("a")))
	assert.True(t, l.refuse(only(cmWatch()), errForbidden))
	assert.False(t, l.refuse(only(cmWatch()), errForbidden), "it is said once")
	assert.Equal(t, []Owner{h}, l.take())
	assert.True(t, l.Unwatched(h, thing("a")))
	l.replace(cmWatch(), nil, "1")
	assert.False(t, l.Unwatched(h, thing("a")), "a watch that runs again is trusted again")
}

func TestStoreAwaitsDefinitions(t *testing.T) {
	l, h := newWoken(), Owner{Name: "w"}
	l.Claim(h, nil, []string{"x.example"})
	assert.Contains(t, l.wanted(), Definitions())
	definition := manifest.ID{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "xs.x.example"}
	l.Observe(definition, Event{Version: "1"})
	assert.Equal(t, []Owner{h}, l.take())
	assert.Equal(t, 1, l.Definitions(h))
	definition.Name = "ys.y.example"
	l.Observe(definition, Event{Version: "1"})
	assert.Empty(t, l.take())
	l.Claim(h, claims("a"), []string{"x.example"})
	assert.Equal(t, 1, l.Definitions(h), "the count stays while it waits")
	l.Claim(h, claims("a"), nil)
	assert.NotContains(t, l.wanted(), Definitions())
}

func TestAllowance(t *testing.T) {
	var a Limiter
	now := epoch
	for i := range burst {
		var ok bool
		a, _, ok = a.Spend(now)
		require.True(t, ok, "repair %d is free", i)
	}
	a, until, ok := a.Spend(now)
	require.False(t, ok)
	assert.Equal(t, now.Add(refill), until)
	a, _, ok = a.Spend(until)
	require.True(t, ok, "at the instant that was told there is one")
	_, _, ok = a.Spend(until.Add(time.Second))
	assert.False(t, ok)
	_, _, ok = a.Spend(until.Add(time.Hour))
	assert.True(t, ok)
}

// TestStoreIsOrderFree: whatever order the events of two objects come in, the Store ends with the newest.
func TestStoreIsOrderFree(t *testing.T) {
	events := []Event{{Version: "11"}, {Version: "12"}, {Deleted: true, Version: "13"}, {Version: "14", UID: "new"}}
	for i := range events {
		for j := range events {
			l, h := newWoken(), Owner{Name: "w"}
			l.Claim(h, claims("a"), nil)
			l.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10"}})
			order := []Event{events[i], events[j], events[3]}
			for _, s := range order {
				l.Observe(thing("a"), s)
			}
			for _, s := range events {
				l.Observe(thing("a"), s)
			}
			assert.Equal(t, events[3], *l.objects[thing("a")].last, fmt.Sprint(order))
		}
	}
}

// TestTheStoreIsUsedByManyAtOnce lets works come and go while the watches report events of their objects.
// Shows: work/store-shared
func TestTheStoreIsUsedByManyAtOnce(t *testing.T) {
	s := NewStore(func(Owner) {}, func() {})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			o := Owner{Name: fmt.Sprint("w", i/2)}
			for round := range 200 {
				s.Claim(o, claims("shared", o.Name), nil)
				s.Observe(thing("shared"), Event{Version: fmt.Sprint(round), UID: "u"})
				known, _ := s.Look(o, thing("shared"))
				known.Object = Object{Exists: true, Version: fmt.Sprint(round)}
				s.Record(o, thing("shared"), known)
				s.replace(cmWatch(), nil, fmt.Sprint(round))
				s.Forget(o)
			}
		})
	}
	all.Wait()
	assert.Empty(t, s.objects)
	assert.Empty(t, s.owners)
	assert.Empty(t, s.watched)
}

func TestARefusedManifestWaitsLongerAndLonger(t *testing.T) {
	for name, c := range map[string]struct {
		refusedFor time.Duration
		least, max time.Duration
	}{
		"at first a moment":                 {0, firstRetry, firstRetry},
		"then as long as it was refused":    {10 * time.Second, 10 * time.Second, 10 * time.Second},
		"for a minute":                      {time.Minute, time.Minute, time.Minute},
		"in the end as rarely as a recheck": {24 * time.Hour, RecheckPause, RecheckPause + RecheckPause/2},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Requested: epoch.Add(c.refusedFor), Failed: &Failure{Since: epoch}}
			pause := state.RetryAt(thing("a")).Sub(state.Requested)
			assert.GreaterOrEqual(t, pause, c.least)
			assert.LessOrEqual(t, pause, c.max)
		})
	}
	assert.Zero(t, (&State{Requested: epoch}).RetryAt(thing("a")), "a manifest that is applied is not tried again")
}

func TestOlder(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"a smaller number is older":               {"9", "10", true},
		"a greater number is not":                 {"10", "9", false},
		"the same is not":                         {"10", "10", false},
		"text has no order":                       {"x", "y", false},
		"empty has no order":                      {"", "1", false},
		"numbers beyond 64 bits are compared too": {"99999999999999999999", "100000000000000000000", true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Older(c.a, c.b)) })
	}
}

func TestTheHashOfMetadata(t *testing.T) {
	base := func() *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
			OwnerReferences: []metav1.OwnerReference{{Name: "w", UID: "u"}}, Finalizers: []string{"f"},
		}
	}
	want := HashMeta(base())
	assert.Equal(t, want, HashMeta(base()))
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"a label":                     func(m *metav1.ObjectMeta) { m.Labels["a"] = "2" },
		"a label made an annotation":  func(m *metav1.ObjectMeta) { delete(m.Labels, "b"); m.Annotations["b"] = "2" },
		"an owner":                    func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = types.UID("v") },
		"a finalizer":                 func(m *metav1.ObjectMeta) { m.Finalizers = nil },
		"the mark of being deleted":   func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} },
		"a value that moves to a key": func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"a": "1b", "": "2"} },
	} {
		t.Run(name, func(t *testing.T) {
			changed := base()
			change(changed)
			assert.NotEqual(t, want, HashMeta(changed))
		})
	}
	moved := base()
	moved.ResourceVersion, moved.Generation = "9", 9
	assert.Equal(t, want, HashMeta(moved), "versions are not part of it")
}

// TestAListCostsNoMoreWithManyOtherWorks compares the least times of many tries with few and with 20,000 other objects:
// to look through all objects for each list costs a thousand times more.
func TestAListCostsNoMoreWithManyOtherWorks(t *testing.T) {
	w, other := newWoken(), Key{Resource: cmWatch().Resource, Namespace: "other"}
	w.Claim(Owner{Name: "w"}, claims("a", "b"), nil)
	least := func() time.Duration {
		best := time.Hour
		for range 50 {
			began := time.Now()
			assert.Len(t, w.claimed(cmWatch()), 2)
			best = min(best, time.Since(began))
		}
		return best
	}
	alone := least()
	for i := range 20_000 {
		name := fmt.Sprint(i)
		w.Claim(Owner{Name: name}, map[manifest.ID]Key{{Resource: "configmaps", Namespace: "other", Name: name}: other}, nil)
	}
	assert.Less(t, least(), 50*(alone+time.Microsecond))
}

func TestAListLooksAtTheOwnersOfItsWatchOnly(t *testing.T) {
	w, other := newWoken(), Key{Resource: cmWatch().Resource, Namespace: "other"}
	w.Claim(Owner{Name: "w"}, claims("a", "b"), nil)
	for i := range 100 {
		name := fmt.Sprint(i)
		w.Claim(Owner{Name: name}, map[manifest.ID]Key{{Resource: "configmaps", Namespace: "other", Name: name}: other}, nil)
	}
	assert.Len(t, w.watched[cmWatch()], 1)
	assert.Len(t, w.claimed(cmWatch()), 2)
	assert.Len(t, w.claimed(other), 100)
	assert.Equal(t, map[Key]int{cmWatch(): 2, other: 100}, w.wanted())
	w.Claim(Owner{Name: "w"}, claims("a"), []string{"example.com"})
	assert.Equal(t, map[Key]int{cmWatch(): 1, other: 100, Definitions(): 1}, w.wanted())
	w.Forget(Owner{Name: "w"})
	assert.Equal(t, map[Key]int{other: 100}, w.wanted())
}
