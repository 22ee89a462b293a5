package work

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cmWatch is the watch of ConfigMaps in ns.
func cmWatch() watchKey {
	return watchKey{resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "ns"}
}

// thing is the identity of a ConfigMap in ns.
func thing(name string) identity {
	return identity{Resource: "configmaps", Namespace: "ns", Name: name}
}

// woken is a ledger that remembers whom it woke.
type woken struct {
	*ledger
	holders []holder
	moves   int
}

func newWoken() *woken {
	w := &woken{}
	w.ledger = newLedger(func(h holder) { w.holders = append(w.holders, h) }, func() { w.moves++ })
	return w
}

// take returns whom the ledger woke since the last time.
func (w *woken) take() []holder {
	taken := w.holders
	w.holders = nil
	return taken
}

// claims makes a set of claims on ConfigMaps in ns.
func claims(names ...string) map[identity]watchKey {
	set := map[identity]watchKey{}
	for _, name := range names {
		set[thing(name)] = cmWatch()
	}
	return set
}

func TestLedgerIgnoresWhatItWroteItself(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a"), nil)
	rec, heard := l.look(h, thing("a"))
	assert.Equal(t, newsNone, heard)
	assert.Zero(t, rec)

	l.see(thing("a"), sighting{version: "10", uid: "u"})
	assert.Empty(t, l.take(), "before the first request is noted, no event is news")
	l.note(h, thing("a"), record{exists: true, version: "10", uid: "u"})
	assert.Empty(t, l.take(), "our own write comes back as an event")
	l.see(thing("a"), sighting{version: "9", uid: "u"})
	assert.Empty(t, l.take(), "an older event is no news")

	l.see(thing("a"), sighting{version: "11", uid: "u"})
	assert.Equal(t, []holder{h}, l.take(), "a newer one is")
	_, heard = l.look(h, thing("a"))
	assert.Equal(t, newsChanged, heard)
	l.see(thing("a"), sighting{gone: true, version: "12"})
	assert.Equal(t, []holder{h}, l.take())
	_, heard = l.look(h, thing("a"))
	assert.Equal(t, newsGone, heard)
}

func TestLedgerWakesForWhatCameWhileARequestRan(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a"), nil)
	rec, _ := l.look(h, thing("a"))
	l.see(thing("a"), sighting{version: "10"})
	l.see(thing("a"), sighting{gone: true, version: "12"})
	rec.exists, rec.version = true, "10"
	l.note(h, thing("a"), rec)
	assert.Equal(t, []holder{h}, l.take(), "it was deleted between our write and its note")
}

func TestLedgerTrustsARequestOverEarlierEvents(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a"), nil)
	l.note(h, thing("a"), record{exists: true, version: "x1"})
	l.see(thing("a"), sighting{version: "x2"})
	assert.Equal(t, []holder{h}, l.take(), "versions without order are news when they differ")
	rec, _ := l.look(h, thing("a"))
	rec.version = "x3"
	l.note(h, thing("a"), rec)
	_, heard := l.look(h, thing("a"))
	assert.Equal(t, newsNone, heard, "what was known before the request is older, order or not")
}

func TestLedgerTellsStatusFromContent(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a"), nil)
	l.note(h, thing("a"), record{exists: true, version: "10", uid: "u", generation: 1, meta: 7})
	l.see(thing("a"), sighting{version: "11", uid: "u", generation: 1, meta: 7})
	assert.Empty(t, l.take(), "a status that nobody reads is no news")
	rec, heard := l.look(h, thing("a"))
	assert.Equal(t, newsNone, heard)
	assert.Equal(t, "11", rec.version)

	rec.reads = digest{1}
	l.note(h, thing("a"), rec)
	l.see(thing("a"), sighting{version: "12", uid: "u", generation: 1, meta: 7})
	assert.Equal(t, []holder{h}, l.take())
	_, heard = l.look(h, thing("a"))
	assert.Equal(t, newsStatus, heard)

	for name, s := range map[string]sighting{
		"another generation": {version: "13", uid: "u", generation: 2, meta: 7},
		"other metadata":     {version: "13", uid: "u", generation: 1, meta: 8},
		"another object":     {version: "13", uid: "v", generation: 1, meta: 7},
		"no generations":     {version: "13", uid: "u", meta: 7},
	} {
		assert.Equal(t, newsChanged, newsOf(&rec, &s), name)
	}
	rec.failure = &failure{}
	assert.Equal(t, newsChanged, newsOf(&rec, &sighting{version: "13", uid: "u", generation: 1, meta: 7}),
		"after a failure any move of the object is a chance")
}

func TestNewsAboutAbsence(t *testing.T) {
	absent, there := record{checked: epoch}, record{exists: true, version: "10"}
	assert.Equal(t, newsNone, newsOf(&absent, &sighting{gone: true, version: "9"}))
	assert.Equal(t, newsChanged, newsOf(&absent, &sighting{version: "9"}), "it came")
	assert.Equal(t, newsNone, newsOf(&there, &sighting{gone: true, version: "9"}), "it was gone before we made it")
	assert.Equal(t, newsGone, newsOf(&there, &sighting{gone: true, version: "10"}))
	assert.Equal(t, newsGone, newsOf(&there, &sighting{gone: true, version: "odd"}))
	assert.Equal(t, newsNone, newsOf(&there, nil))
}

// Row: work 6.1 AP TestCache, TestCurrentReadWriteCache
// Weakness: W14
func TestLedgerHoldsObjectsOfSeveralWorks(t *testing.T) {
	l, one, two := newWoken(), holder{name: "one"}, holder{name: "two"}
	l.claim(one, claims("a", "b"), nil)
	l.claim(two, claims("a"), nil)
	l.note(one, thing("a"), record{exists: true, version: "10"})
	l.note(two, thing("a"), record{exists: true, version: "11"})
	assert.Equal(t, 1, l.moves, "one watch serves both")
	l.see(thing("a"), sighting{version: "11"})
	assert.Equal(t, []holder{one}, l.take(), "only whose knowledge is older is woken")

	l.claim(one, nil, nil)
	l.see(thing("a"), sighting{version: "12"})
	assert.Equal(t, []holder{two}, l.take())
	assert.Len(t, l.watches(), 1)
	l.claim(two, nil, nil)
	assert.Empty(t, l.watches())
	assert.Empty(t, l.objects)
	assert.Empty(t, l.holders)
	assert.Equal(t, 2, l.moves)
	l.see(thing("a"), sighting{version: "13"})
	l.note(two, thing("a"), record{})
	assert.Empty(t, l.objects, "what nobody holds is not remembered")
}

func TestLedgerListing(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a", "b", "c"), nil)
	for _, name := range []string{"a", "b", "c"} {
		l.note(h, thing(name), record{exists: true, version: "10"})
	}
	l.listed(cmWatch(), map[identity]sighting{thing("a"): {version: "10"}, thing("x"): {version: "3"}}, "9")
	assert.Empty(t, l.take(), "a list from before our writes says nothing")
	l.listed(cmWatch(), map[identity]sighting{thing("a"): {version: "10"}, thing("b"): {version: "11"}}, "12")
	assert.Equal(t, []holder{h, h}, l.take(), "b changed and c is gone")
	_, heard := l.look(h, thing("c"))
	assert.Equal(t, newsGone, heard)
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
			l, h := newWoken(), holder{name: "w"}
			l.claim(h, claims("a", "b"), nil)
			was := sighting{version: "50", uid: "u", generation: 3, meta: 7}
			l.listed(cmWatch(), map[identity]sighting{thing("a"): was, thing("b"): was}, "100")
			known := record{exists: true, version: "50", uid: "u", generation: 3, meta: 7}
			for _, name := range []string{"a", "b"} {
				rec, _ := l.look(h, thing(name))
				known.base = rec.base
				l.note(h, thing(name), known)
			}
			if c.seen != "" {
				next := was
				next.version = c.seen
				l.see(thing("b"), next)
			}
			l.take()
			// What the restored store has is older than what was seen, in the same generation.
			back := was
			back.version = "40"
			l.listed(cmWatch(), map[identity]sighting{thing("a"): back}, c.put)
			_, heard := l.look(h, thing("a"))
			if !c.woken {
				assert.Equal(t, newsNone, heard)
				return
			}
			assert.Contains(t, l.take(), h)
			assert.Equal(t, newsChanged, heard, "what is there may be anything")
			_, heard = l.look(h, thing("b"))
			assert.Equal(t, newsGone, heard, "what is not there is gone")

			rec, _ := l.look(h, thing("a"))
			l.note(h, thing("a"), record{base: rec.base, exists: true, version: "41", uid: "u", generation: 3})
			l.take()
			l.listed(cmWatch(), map[identity]sighting{thing("a"): {version: "41", uid: "u", generation: 3}}, "600")
			_, heard = l.look(h, thing("a"))
			assert.Equal(t, newsNone, heard, "from then on versions count again")
		})
	}
}

func TestAWatchOfAKindThatIsNotServedSaysNothing(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, claims("a"), nil)
	l.note(h, thing("a"), record{exists: true, version: "10", uid: "u"})
	l.doubt(cmWatch())
	assert.Equal(t, []holder{h}, l.take())
	rec, heard := l.look(h, thing("a"))
	assert.Equal(t, newsChanged, heard, "the object is not known to be gone")
	l.note(h, thing("a"), record{base: rec.base, exists: true, version: "10", uid: "u"})
	l.doubt(cmWatch())
	assert.Empty(t, l.take(), "once is enough")
}

func TestLedgerRefusal(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	assert.True(t, l.unwatched(h, thing("a")), "what is not claimed is not watched")
	l.claim(h, claims("a"), nil)
	assert.False(t, l.unwatched(h, thing("a")))
	assert.True(t, l.refuse(cmWatch(), "forbidden"))
	assert.False(t, l.refuse(cmWatch(), "forbidden"), "it is said once")
	assert.Equal(t, []holder{h}, l.take())
	assert.True(t, l.unwatched(h, thing("a")))
	l.listed(cmWatch(), nil, "1")
	assert.False(t, l.unwatched(h, thing("a")), "a watch that runs again is trusted again")
}

func TestLedgerAwaitsDefinitions(t *testing.T) {
	l, h := newWoken(), holder{name: "w"}
	l.claim(h, nil, []string{"x.example"})
	assert.Contains(t, l.watches(), definitionsKey())
	definition := identity{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "xs.x.example"}
	l.see(definition, sighting{version: "1"})
	assert.Equal(t, []holder{h}, l.take())
	assert.Equal(t, 1, l.definitions(h))
	definition.Name = "ys.y.example"
	l.see(definition, sighting{version: "1"})
	assert.Empty(t, l.take())
	l.claim(h, claims("a"), []string{"x.example"})
	assert.Equal(t, 1, l.definitions(h), "the count stays while it waits")
	l.claim(h, claims("a"), nil)
	assert.NotContains(t, l.watches(), definitionsKey())
}

func TestAllowance(t *testing.T) {
	var a allowance
	now := epoch
	for i := range repairBurst {
		var ok bool
		a, _, ok = a.spend(now)
		require.True(t, ok, "repair %d is free", i)
	}
	a, until, ok := a.spend(now)
	require.False(t, ok)
	assert.Equal(t, now.Add(repairPause), until)
	a, _, ok = a.spend(until)
	require.True(t, ok, "at the instant that was told there is one")
	_, _, ok = a.spend(until.Add(time.Second))
	assert.False(t, ok)
	_, _, ok = a.spend(until.Add(time.Hour))
	assert.True(t, ok)
}

// TestLedgerIsOrderFree: whatever order the events of two objects come in, the ledger ends with the newest.
func TestLedgerIsOrderFree(t *testing.T) {
	events := []sighting{{version: "11"}, {version: "12"}, {gone: true, version: "13"}, {version: "14", uid: "new"}}
	for i := range events {
		for j := range events {
			l, h := newWoken(), holder{name: "w"}
			l.claim(h, claims("a"), nil)
			l.note(h, thing("a"), record{exists: true, version: "10"})
			order := []sighting{events[i], events[j], events[3]}
			for _, s := range order {
				l.see(thing("a"), s)
			}
			for _, s := range events {
				l.see(thing("a"), s)
			}
			assert.Equal(t, events[3], *l.objects[thing("a")].last, fmt.Sprint(order))
		}
	}
}

func TestLag(t *testing.T) {
	w := written{uid: "u", version: "10", at: epoch}
	assert.False(t, written{}.lag("u", "1", false, epoch))
	assert.True(t, w.lag("u", "9", false, epoch))
	assert.False(t, w.lag("u", "10", false, epoch))
	assert.True(t, w.lag("", "", false, epoch), "the cache does not know it yet")
	assert.False(t, w.lag("other", "1", false, epoch))
	assert.False(t, w.lag("u", "9", false, epoch.Add(staleLimit+1)), "not forever")
	w.deleting = true
	assert.True(t, w.lag("u", "11", false, epoch))
	assert.False(t, w.lag("u", "11", true, epoch))
}
