package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

func watchOf(resource, namespace string) Key {
	return Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: namespace}
}

// watchesOf returns the scopes of names such as "configmaps a"; "configmaps *" is the wide one.
func watchesOf(names ...string) []scope {
	var scopes []scope
	for _, name := range names {
		resource, namespace, _ := strings.Cut(name, " ")
		switch key := watchOf(resource, namespace); {
		case name == "definitions":
			scopes = append(scopes, only(Definitions()))
		case namespace == "*":
			scopes = append(scopes, everywhere(key.Resource))
		default:
			scopes = append(scopes, only(key))
		}
	}
	return scopes
}

// counted gives each name one claim.
func counted(names ...string) map[string]int {
	wanted := map[string]int{}
	for _, name := range names {
		wanted[name] = 1
	}
	return wanted
}

func TestWhichWatchesThereAre(t *testing.T) {
	many := []string{"secrets a", "configmaps a", "configmaps b", "configmaps c", "configmaps d"}
	for name, tc := range map[string]struct {
		wanted                    map[string]int
		running                   []string
		limit                     int
		chosen, shared, uncovered []string
	}{
		"all of them when there is room": {
			wanted: counted("configmaps a", "configmaps b"), limit: 2, chosen: []string{"configmaps a", "configmaps b"},
		},
		"those with most objects first": {
			wanted: map[string]int{"configmaps a": 1, "pods b": 3, "secrets a": 2}, limit: 2,
			chosen: []string{"pods b", "secrets a"}, uncovered: []string{"configmaps a"},
		},
		"what runs goes on": {
			wanted: map[string]int{"configmaps a": 1, "pods b": 3, "secrets a": 2}, running: []string{"configmaps a"}, limit: 2,
			chosen: []string{"configmaps a", "pods b"}, uncovered: []string{"secrets a"},
		},
		"definitions before everything else": {
			wanted: map[string]int{"configmaps a": 9, "configmaps b": 9, "definitions": 1}, running: []string{"configmaps *"},
			limit: 1, chosen: []string{"definitions"}, uncovered: []string{"configmaps a", "configmaps b"},
		},
		"the same ones every time": {
			wanted: counted("secrets a", "pods b", "configmaps a"), limit: 1,
			chosen: []string{"configmaps a"}, uncovered: []string{"pods b", "secrets a"},
		},
		"a resource in many namespaces gets one watch for all, and what room is left": {
			wanted: counted(many...), limit: 4, chosen: []string{"secrets a", "configmaps *", "configmaps a", "configmaps b"},
			shared: []string{"configmaps c", "configmaps d"},
		},
		"the one in most namespaces first, and no more than are needed": {
			wanted: counted("pods a", "pods b", "configmaps a", "configmaps b", "configmaps c"), limit: 3,
			chosen: []string{"pods a", "pods b", "configmaps *"},
			shared: []string{"configmaps a", "configmaps b", "configmaps c"},
		},
		"a resource in one namespace gets none, and one without namespaces comes first": {
			wanted: counted("nodes", "configmaps a", "secrets a"), running: []string{"configmaps a", "secrets a"}, limit: 2,
			chosen: []string{"configmaps a", "nodes"}, uncovered: []string{"secrets a"},
		},
		"a resource without namespaces has its watch beside a wide one of its name": {
			wanted: counted("configmaps", "configmaps a", "configmaps b"), limit: 2,
			chosen: []string{"configmaps", "configmaps *"}, shared: []string{"configmaps a", "configmaps b"},
		},
		"what ran goes on beside a wide one as far as there is room": {
			wanted: counted(many...), running: []string{"configmaps b", "configmaps c", "configmaps d"}, limit: 4,
			chosen: []string{"secrets a", "configmaps *", "configmaps b", "configmaps c"},
			shared: []string{"configmaps a", "configmaps d"},
		},
		"a wide watch goes on while its keys would fit barely": {
			wanted: counted(many...), running: []string{"configmaps *"}, limit: 6, chosen: append(many, "configmaps *"),
		},
		"and not when they fit well": {
			wanted: counted(many...), running: []string{"configmaps *"}, limit: 7, chosen: many,
		},
		"nor for one namespace": {
			wanted: counted("configmaps a", "secrets a"), running: []string{"configmaps *"}, limit: 1,
			chosen: []string{"configmaps a"}, uncovered: []string{"secrets a"},
		},
		"a wide watch that is not needed beside a wider one ends": {
			wanted:  counted("pods a", "pods b", "configmaps a", "configmaps b", "configmaps c", "configmaps d", "configmaps e"),
			running: []string{"pods *"}, limit: 5, chosen: []string{"pods a", "pods b", "configmaps *", "configmaps a", "configmaps b"},
			shared: []string{"configmaps c", "configmaps d", "configmaps e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[Key]int{}
			for name, claims := range tc.wanted {
				wanted[watchesOf(name)[0].Key] = claims
			}
			running := watchesOf(tc.running...)
			chosen, covers := choose(wanted, func(s scope) bool { return slices.Contains(running, s) }, tc.limit)
			assert.ElementsMatch(t, watchesOf(tc.chosen...), chosen)
			for key, c := range covers {
				want := own
				switch one := only(key); {
				case slices.Contains(watchesOf(tc.shared...), one):
					want = shared
				case slices.Contains(watchesOf(tc.uncovered...), one):
					want = uncovered
				}
				assert.Equal(t, want, c, key)
			}
			assert.Len(t, covers, len(wanted))
		})
	}
}

// TestWatchesAreBoundedAndSteady lets wanted keys change at random, and chooses from what runs each time.
func TestWatchesAreBoundedAndSteady(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // plays repeat
		limit, running := 1+random.IntN(12), map[scope]bool{}
		runs := func(s scope) bool { return running[s] }
		for range 20 {
			wanted := map[Key]int{}
			for range random.IntN(3 * limit) {
				resource := fmt.Sprint("r", random.IntN(4))
				wanted[watchOf(resource, []string{"a", "b", "c", "d", "e"}[random.IntN(5)])] = 1 + random.IntN(3)
			}
			for range random.IntN(2) {
				wanted[watchOf(fmt.Sprint("r", 4+random.IntN(2)), "")] = 1
				wanted[Definitions()] = 1
			}
			chosen, covers := choose(wanted, runs, limit)
			running = map[scope]bool{}
			for _, s := range chosen {
				require.False(t, running[s], "each once")
				running[s] = true
			}
			require.LessOrEqual(t, len(chosen), limit)
			for key := range wanted {
				switch covers[key] {
				case own:
					require.True(t, running[only(key)])
				case shared:
					require.True(t, running[everywhere(key.Resource)] && !running[only(key)])
				case uncovered:
					require.False(t, running[everywhere(key.Resource)] || running[only(key)])
					require.Len(t, chosen, limit, "what is not watched has no room")
				case undecided:
					require.Fail(t, "undecided", key)
				}
			}
			require.True(t, wanted[Definitions()] == 0 || running[only(Definitions())])
			again, still := choose(wanted, runs, limit)
			require.ElementsMatch(t, chosen, again, "nothing flaps: limit %d, %v", limit, wanted)
			require.Equal(t, covers, still)
		}
	}
}

func TestBeyondTheBoundObjectsAreLookedAtNowAndThen(t *testing.T) {
	r := runWith(t, 1, time.Hour, func(*fake.FakeMetadataClient) {})
	first, second := Owner{Name: "first"}, Owner{Name: "second"}
	there := manifest.ID{Resource: "secrets", Namespace: "ns", Name: "b"}
	r.store.Claim(first, claims("a", "c"), nil)
	r.store.Claim(second, map[manifest.ID]Key{there: watchOf("secrets", "ns")}, nil)
	require.Eventually(t, func() bool { return r.store.Unwatched(second, there) }, waitFor, tick)
	assert.Equal(t, 1, r.wokenBy(second), "its work looks for itself")
	assert.False(t, r.store.Unwatched(first, thing("a")))
	assert.Equal(t, Size{Works: 2, Objects: 3, Wanted: 2, Beyond: 1}, r.store.Size())

	r.store.Claim(first, nil, nil)
	require.Eventually(t, func() bool { return !r.store.Unwatched(second, there) }, waitFor, tick, "there is room again")
	assert.Equal(t, Size{Works: 1, Objects: 1, Wanted: 1}, r.store.Size())
}

func TestAWatchIsNotTrustedForEver(t *testing.T) {
	var mu sync.Mutex
	lists := 0
	r := runWith(t, 1, 20*time.Millisecond, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			lists++
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
			if lists == 1 {
				list.Items = []runtime.RawExtension{{Object: partial("a", "10")}}
			}
			return true, list, nil
		})
		// A watch that never says anything, not even that the object is gone.
		c.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil
		})
	})
	h := Owner{Name: "w"}
	r.store.Claim(h, claims("a"), nil)
	r.store.Record(h, thing("a"), State{Object: Object{Exists: true, Version: "10"}})
	require.Eventually(t, func() bool { return r.wokenBy(h) > 0 }, waitFor, tick, "the next list shows what was missed")
	_, drift := r.store.Look(h, thing("a"))
	assert.Equal(t, Deleted, drift)
}
