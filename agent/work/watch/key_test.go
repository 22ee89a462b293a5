package watch

import (
	"fmt"
	"maps"
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

func TestWhichWatchesThereAre(t *testing.T) {
	fareOf := func(resource string, f fare) map[schema.GroupVersionResource]fare {
		return map[schema.GroupVersionResource]fare{watchOf(resource, "").Resource: f}
	}
	wide := []string{"secrets a", "configmaps a", "configmaps b", "configmaps c", "configmaps d"}
	for name, tc := range map[string]struct {
		wanted         map[string]int
		running        []string
		fares          map[schema.GroupVersionResource]fare
		limit          int
		chosen, beyond []string
	}{
		"all of them when there is room": {
			wanted: map[string]int{"configmaps a": 1, "configmaps b": 1}, limit: 2,
			chosen: []string{"configmaps a", "configmaps b"},
		},
		"those with most objects first": {
			wanted: map[string]int{"configmaps a": 1, "pods b": 3, "secrets a": 2}, limit: 2,
			chosen: []string{"pods b", "secrets a"}, beyond: []string{"configmaps a"},
		},
		"what runs goes on": {
			wanted: map[string]int{"configmaps a": 1, "pods b": 3, "secrets a": 2}, running: []string{"configmaps a"}, limit: 2,
			chosen: []string{"configmaps a", "pods b"}, beyond: []string{"secrets a"},
		},
		"definitions before everything else": {
			wanted: map[string]int{"configmaps a": 9, "configmaps b": 9, "definitions": 1}, running: []string{"configmaps *"},
			limit: 1, chosen: []string{"definitions"}, beyond: []string{"configmaps a", "configmaps b"},
		},
		"the same ones every time": {
			wanted: map[string]int{"secrets a": 1, "pods b": 1, "configmaps a": 1}, limit: 1,
			chosen: []string{"configmaps a"}, beyond: []string{"pods b", "secrets a"},
		},
		"a resource in many namespaces gets one watch for all": {
			wanted: counted(wide...), limit: 4, chosen: []string{"secrets a", "configmaps *"},
		},
		"the one in most namespaces first, and no more than are needed": {
			wanted: counted("pods a", "pods b", "configmaps a", "configmaps b", "configmaps c"), limit: 3,
			chosen: []string{"pods a", "pods b", "configmaps *"},
		},
		"a resource in one namespace gets none, nor one without namespaces": {
			wanted: counted("nodes", "configmaps a", "secrets a"), limit: 2,
			chosen: []string{"configmaps a", "nodes"}, beyond: []string{"secrets a"},
		},
		"a resource without namespaces has its watch beside a wide one of its name": {
			wanted: counted("configmaps", "configmaps a", "configmaps b"), limit: 2,
			chosen: []string{"configmaps", "configmaps *"},
		},
		"the narrow watches go on until the wide one has listed": {
			wanted: counted(wide...), running: []string{"configmaps *", "configmaps a", "configmaps b", "configmaps c"}, limit: 4,
			chosen: []string{"secrets a", "configmaps *", "configmaps a", "configmaps b"},
		},
		"and end then": {
			wanted: counted(wide...), running: []string{"configmaps *", "configmaps a"}, fares: fareOf("configmaps", works), limit: 4,
			chosen: []string{"secrets a", "configmaps *"},
		},
		"a wide watch goes on while the narrow ones would fit barely": {
			wanted: counted(wide...), running: []string{"configmaps *"}, fares: fareOf("configmaps", works), limit: 6,
			chosen: []string{"secrets a", "configmaps *"},
		},
		"and not when they fit well": {
			wanted: counted(wide...), running: []string{"configmaps *"}, fares: fareOf("configmaps", works), limit: 7,
			chosen: []string{"secrets a", "configmaps a", "configmaps b", "configmaps c", "configmaps d"},
		},
		"a wide watch that is refused is tried on, beside as many narrow ones as may be": {
			wanted: counted(wide...), running: []string{"configmaps *"}, fares: fareOf("configmaps", fails), limit: 3,
			chosen: []string{"configmaps a", "configmaps b", "configmaps c", "configmaps *"},
			beyond: []string{"configmaps d", "secrets a"},
		},
		"and another resource gets one": {
			wanted: counted(append(wide, "pods a", "pods b")...), running: []string{"configmaps *"},
			fares: fareOf("configmaps", fails), limit: 6,
			chosen: []string{"configmaps a", "configmaps b", "configmaps c", "configmaps d", "secrets a", "pods *"},
		},
		"a wide watch that is refused is not tried on when all have room": {
			wanted: counted(wide...), running: []string{"configmaps *"}, fares: fareOf("configmaps", fails), limit: 5,
			chosen: wide,
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[Key]int{}
			for name, claims := range tc.wanted {
				wanted[watchesOf(name)[0].Key] = claims
			}
			running := watchesOf(tc.running...)
			chosen, beyond := choose(wanted, func(s scope) bool { return slices.Contains(running, s) }, tc.fares, tc.limit)
			assert.ElementsMatch(t, watchesOf(tc.chosen...), chosen)
			assert.Equal(t, watchesOf(tc.beyond...), scopes(beyond))
		})
	}
}

// counted gives each name one claim.
func counted(names ...string) map[string]int {
	wanted := map[string]int{}
	for _, name := range names {
		wanted[name] = 1
	}
	return wanted
}

// scopes returns the scopes of keys.
func scopes(keys []Key) (all []scope) {
	for _, key := range keys {
		all = append(all, only(key))
	}
	return all
}

// TestWatchesAreBoundedAndSteady lets wanted keys and rights change at random, and chooses from what runs each time.
func TestWatchesAreBoundedAndSteady(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit, running := 1+random.IntN(12), map[scope]bool{}
		runs := func(s scope) bool { return running[s] }
		fares := map[schema.GroupVersionResource]fare{}
		for range 20 {
			wanted := map[Key]int{}
			for range random.IntN(3 * limit) {
				resource := fmt.Sprint("r", random.IntN(4))
				wanted[watchOf(resource, []string{"", "a", "b", "c", "d", "e"}[random.IntN(6)])] = 1 + random.IntN(3)
				fares[watchOf(resource, "").Resource] = fare(random.IntN(3))
			}
			if random.IntN(2) == 0 {
				wanted[Definitions()] = 1
			}
			maps.DeleteFunc(fares, func(of schema.GroupVersionResource, _ fare) bool { return !runs(everywhere(of)) })
			chosen, beyond := choose(wanted, runs, fares, limit)
			running = map[scope]bool{}
			count := 0
			for _, s := range chosen {
				require.False(t, running[s], "each once")
				if running[s] = true; !s.wide || fares[s.Resource] != fails {
					count++
				}
			}
			require.LessOrEqual(t, count, limit)
			for key := range wanted {
				wide := running[everywhere(key.Resource)] && fares[key.Resource] != fails && key.Namespace != ""
				covered := running[only(key)] || wide
				require.NotEqual(t, covered, slices.Contains(beyond, key), "%s is covered or beyond", key)
				require.False(t, running[only(key)] && wide && fares[key.Resource] == works, "%s is watched twice", key)
			}
			require.True(t, wanted[Definitions()] == 0 || running[only(Definitions())])
			again, still := choose(wanted, runs, fares, limit)
			require.ElementsMatch(t, chosen, again, "nothing flaps: limit %d, %v", limit, wanted)
			require.ElementsMatch(t, beyond, still)
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
