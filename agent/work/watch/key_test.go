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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	works1, settled1 := map[string]fare{"configmaps": works}, map[string]fare{"configmaps": settled}
	fails1 := map[string]fare{"configmaps": fails}
	for name, tc := range map[string]struct {
		wanted                    map[string]int
		running, refused          []string
		fares                     map[string]fare
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
		"refused keys need no room, so no wide watch stands in for others": {
			wanted: counted("secrets a", "secrets b", "reviews a", "reviews b", "reviews c"), limit: 3,
			running: []string{"secrets a", "secrets b"}, refused: []string{"reviews a", "reviews b", "reviews c"},
			chosen: []string{"secrets a", "secrets b", "reviews a"}, uncovered: []string{"reviews b", "reviews c"},
		},
		"the same ones every time": {
			wanted: counted("secrets a", "pods b", "configmaps a"), limit: 1,
			chosen: []string{"configmaps a"}, uncovered: []string{"pods b", "secrets a"},
		},
		"a resource in many namespaces gets one watch for all, and its keys have theirs until that works": {
			wanted: counted(many...), running: many[1:], limit: 4, chosen: append([]string{"configmaps *"}, many[1:]...),
			uncovered: []string{"secrets a"},
		},
		"when it works there is room for others, and what room is left": {
			wanted: counted(many...), running: append([]string{"configmaps *"}, many[1:]...), fares: works1, limit: 4,
			chosen: []string{"secrets a", "configmaps *", "configmaps a", "configmaps b"},
			shared: []string{"configmaps c", "configmaps d"},
		},
		"the one in most namespaces first, and no more than are needed": {
			wanted: counted("pods a", "pods b", "configmaps a", "configmaps b", "configmaps c"), fares: works1, limit: 3,
			chosen: []string{"pods a", "pods b", "configmaps *"},
			shared: []string{"configmaps a", "configmaps b", "configmaps c"},
		},
		"new keys of others take no watch that runs while the wide one is refused": {
			wanted: counted(append(many, "pods a", "pods b")...), running: many[1:], fares: fails1, limit: 4,
			chosen: append([]string{"configmaps *", "pods *"}, many[1:]...),
			shared: []string{"pods a", "pods b"}, uncovered: []string{"secrets a"},
		},
		"a wide watch that is refused is not tried on when all have room": {
			wanted: counted(many...), running: []string{"configmaps *"}, fares: fails1, limit: 5, chosen: many,
		},
		"a resource in one namespace gets none, and one without namespaces comes first": {
			wanted: counted("nodes", "configmaps a", "secrets a"), running: []string{"configmaps a", "secrets a"}, limit: 2,
			chosen: []string{"configmaps a", "nodes"}, uncovered: []string{"secrets a"},
		},
		"a resource without namespaces has its watch beside a wide one of its name": {
			wanted: counted("configmaps", "configmaps a", "configmaps b"), fares: works1, limit: 2,
			chosen: []string{"configmaps", "configmaps *"}, shared: []string{"configmaps a", "configmaps b"},
		},
		"a wide watch goes on while its keys would fit barely": {
			wanted: counted(many...), running: []string{"configmaps *"}, fares: settled1, limit: 6,
			chosen: append([]string{"configmaps *"}, many...),
		},
		"and not when they fit well": {
			wanted: counted(many...), running: []string{"configmaps *"}, fares: settled1, limit: 7, chosen: many,
		},
		"but for ten minutes, so that nobody can make it come and go": {
			wanted: counted(many...), running: []string{"configmaps *"}, fares: works1, limit: 7,
			chosen: append([]string{"configmaps *"}, many...),
		},
		"not for one namespace": {
			wanted: counted("configmaps a", "secrets a"), running: []string{"configmaps *"}, fares: settled1, limit: 1,
			chosen: []string{"configmaps a"}, uncovered: []string{"secrets a"},
		},
		"a wide watch that is not needed beside a wider one ends": {
			wanted:  counted("pods a", "pods b", "configmaps a", "configmaps b", "configmaps c", "configmaps d", "configmaps e"),
			running: []string{"pods *"}, fares: map[string]fare{"configmaps": works, "pods": settled}, limit: 5,
			chosen: []string{"pods a", "pods b", "configmaps *", "configmaps a", "configmaps b"},
			shared: []string{"configmaps c", "configmaps d", "configmaps e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[Key]int{}
			for name, claims := range tc.wanted {
				wanted[watchesOf(name)[0].Key] = claims
			}
			running := watchesOf(tc.running...)
			chosen, covers := choose(wanted, situation{
				running: func(s scope) bool { return slices.Contains(running, s) },
				fare:    func(of schema.GroupVersionResource) fare { return tc.fares[of.Resource] },
				refused: func(key Key) bool { return slices.Contains(watchesOf(tc.refused...), only(key)) },
			}, tc.limit)
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

// TestWatchesAreBoundedAndSteady lets wanted keys and the fares of wide watches change at random, and chooses from what
// runs each time.
func TestWatchesAreBoundedAndSteady(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit, running := 1+random.IntN(12), map[scope]bool{}
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
			fares := map[string]fare{}
			for one := range running {
				if one.wide {
					fares[one.Resource.Resource] = fare(random.IntN(4))
				}
			}
			now := situation{
				running: func(s scope) bool { return running[s] },
				fare:    func(of schema.GroupVersionResource) fare { return fares[of.Resource] },
				refused: func(key Key) bool { return len(key.Resource.Resource+key.Namespace)%5 == 0 && seed%2 == 0 },
			}
			chosen, covers := choose(wanted, now, limit)
			checkChosen(t, wanted, chosen, covers, now, limit)
			running = map[scope]bool{}
			for _, s := range chosen {
				running[s] = true
			}
			again, still := choose(wanted, now, limit)
			require.ElementsMatch(t, chosen, again, "nothing flaps: seed %d, limit %d, %v", seed, limit, wanted)
			require.Equal(t, covers, still)
		}
	}
}

// checkChosen checks what holds for all choices.
func checkChosen(
	t *testing.T, wanted map[Key]int, chosen []scope, covers map[Key]cover, now situation, limit int,
) {
	t.Helper()
	has, working := map[scope]bool{}, 0
	for _, s := range chosen {
		require.False(t, has[s], "each once")
		if has[s] = true; !s.wide || now.relies(s.Resource) {
			working++
		}
	}
	require.LessOrEqual(t, working, limit)
	for key := range wanted {
		wide := has[everywhere(key.Resource)] && key.Namespace != ""
		switch covers[key] {
		case own:
			require.True(t, has[only(key)])
		case shared:
			require.True(t, wide && !has[only(key)])
		case uncovered:
			require.False(t, wide || has[only(key)])
			require.Equal(t, limit, working, "what is not watched has no room")
		case undecided:
			require.Fail(t, "undecided", key)
		}
		lost := now.running(only(key)) && !has[only(key)] && (!wide || !now.relies(key.Resource))
		if lost && key.Namespace != "" && !now.refused(key) {
			for _, other := range chosen {
				runs := other.wide || other.Namespace == "" || now.running(other)
				require.True(t, runs, "%s took the watch of %s, which runs", other, key)
			}
		}
	}
	require.True(t, wanted[Definitions()] == 0 || has[only(Definitions())])
}

func TestBeyondTheBoundObjectsAreLookedAtNowAndThen(t *testing.T) {
	r := runWith(t, 1, time.Hour, func(*fake.FakeMetadataClient) {})
	first, second := Owner{Name: "first"}, Owner{Name: "second"}
	there := manifest.ID{Resource: "secrets", Namespace: "ns", Name: "b"}
	r.store.Claim(first, claims("a", "c"), nil)
	r.store.Claim(second, map[manifest.ID]Key{there: watchOf("secrets", "ns")}, nil)
	require.Eventually(t, func() bool { return r.store.Unwatched(second, there) }, waitFor, tick)
	r.awaitWoken(t, second, 1, "its work looks for itself")
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

// TestTheChoiceOfWatchesSettles has keys that stay, and resources that the API server lets watch everywhere or not. A
// choice that changes back and forth would end watches and begin them again without end.
//
// Shows: work/watches-wide
func TestTheChoiceOfWatchesSettles(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit, learned := 1+random.IntN(8), []fare{works, settled}[random.IntN(2)]
		wanted, denied := map[Key]int{}, map[schema.GroupVersionResource]bool{}
		for i := range 1 + random.IntN(4) {
			resource := watchOf(fmt.Sprint("r", i), "").Resource
			denied[resource] = random.IntN(3) == 0
			for n := range random.IntN(8) {
				wanted[Key{Resource: resource, Namespace: fmt.Sprint("n", n)}] = 1 + random.IntN(3)
			}
		}
		for i := range random.IntN(3) {
			wanted[watchOf(fmt.Sprint("c", i), "")] = 1
		}
		// A resource that may not be watched everywhere may be watched in some namespaces, in all, or in none.
		shows := random.IntN(3)
		running, fares := map[scope]bool{}, map[schema.GroupVersionResource]fare{}
		refused := map[Key]bool{}
		settles := false
		for round, before := 0, ""; round < 60 && !settles; round++ {
			chosen, covers := choose(wanted, situation{
				running: func(one scope) bool { return running[one] },
				fare:    func(of schema.GroupVersionResource) fare { return fares[of] },
				refused: func(key Key) bool { return refused[key] },
			}, limit)
			clear(running)
			for _, one := range chosen {
				running[one] = true
			}
			maps.DeleteFunc(fares, func(of schema.GroupVersionResource, _ fare) bool { return !running[everywhere(of)] })
			for one := range running {
				switch {
				case !one.wide && denied[one.Resource]:
					refused[one.Key] = shows == 0 || shows == 1 && one.Namespace > "n3"
				case !one.wide:
				case denied[one.Resource]:
					fares[one.Resource] = fails
				default:
					fares[one.Resource] = learned
				}
			}
			now := fmt.Sprint(running, covers, fares, refused)
			settles, before = now == before, now
		}
		require.True(t, settles, "seed %d: limit %d, denied %v, wanted %v", seed, limit, denied, wanted)
	}
}

// A work that its executor may not even apply may want watches of a kind that the agent may not watch.
//
// Shows: work/watches-wide
func TestKeysWhoseWatchIsRefusedTakeNoPlaceFromOthers(t *testing.T) {
	const limit = 50
	r, attacker := runWith(t, limit, time.Hour, func(client *fake.FakeMetadataClient) {
		client.PrependReactor("list", "reviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "reviews"}, "list")
		})
	}), Owner{Name: "attacker"}
	reviews := map[manifest.ID]Key{}
	for i := range limit + 10 {
		namespace := fmt.Sprint("none-", i)
		reviews[manifest.ID{Resource: "reviews", Namespace: namespace, Name: "x"}] = watchOf("reviews", namespace)
	}
	r.store.Claim(attacker, reviews, nil)
	victim, id := Owner{Name: "victim"}, manifest.ID{Resource: "services", Namespace: "shop", Name: "x"}
	r.store.Claim(victim, map[manifest.ID]Key{id: watchOf("services", "shop")}, nil)
	require.Eventually(t, func() bool {
		size := r.store.Size()
		return !r.store.Unwatched(victim, id) && size.Refused == limit-1 && size.Beyond == 11
	}, waitFor, tick)
}
