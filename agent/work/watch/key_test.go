package watch

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
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

// narrow are the scopes of keys.
func narrow(keys ...Key) []scope {
	all := make([]scope, 0, len(keys))
	for _, key := range keys {
		all = append(all, only(key))
	}
	return all
}

// runs reports whether a scope is among those that run.
func runs(all []scope) func(scope) bool {
	return func(one scope) bool { return slices.Contains(all, one) }
}

func TestWhichWatchesThereAre(t *testing.T) {
	a, b, c, d := watchOf("configmaps", "a"), watchOf("configmaps", "b"), watchOf("secrets", "a"), Definitions()
	role, wide := watchOf("clusterroles", ""), everywhere(a.Resource)
	refused := map[schema.GroupVersionResource]fare{a.Resource: fails}
	listed := map[schema.GroupVersionResource]fare{a.Resource: works}
	for name, tc := range map[string]struct {
		wanted  map[Key]int
		running []scope
		fares   map[schema.GroupVersionResource]fare
		limit   int
		chosen  []scope
		beyond  []Key
	}{
		"all of them when there is room": {map[Key]int{a: 1, b: 1}, nil, nil, 2, narrow(a, b), nil},
		"a resource in two namespaces is watched in all when there is none": {
			map[Key]int{a: 1, b: 3, c: 2}, nil, nil, 2, append(narrow(c), wide), nil,
		},
		"its watches go on until the wide one listed": {
			map[Key]int{a: 1, b: 1, c: 2}, narrow(a, b), nil, 3, narrow(a, b, c), nil,
		},
		"as far as there is room": {
			map[Key]int{a: 1, b: 1, c: 2}, narrow(a, b), nil, 2, append(narrow(c), wide), nil,
		},
		"they end when it did": {
			map[Key]int{a: 1, b: 1, c: 2}, append(narrow(a, c), wide), listed, 2, append(narrow(c), wide), nil,
		},
		"a wide watch goes on while there is little room": {
			map[Key]int{a: 1, b: 1, c: 2}, append(narrow(c), wide), listed, 3, append(narrow(c), wide), nil,
		},
		"and ends when there is enough": {
			map[Key]int{a: 1, b: 1, c: 2}, append(narrow(c), wide), listed, 4, narrow(a, b, c), nil,
		},
		"one that is refused does not count, and is tried on": {
			map[Key]int{a: 1, b: 3, c: 2}, []scope{wide}, refused, 2, append(narrow(b, c), wide), []Key{a},
		},
		"those with most objects first": {map[Key]int{role: 1, c: 2}, nil, nil, 1, narrow(c), []Key{role}},
		"what runs goes on":             {map[Key]int{role: 1, c: 2}, narrow(role), nil, 1, narrow(role), []Key{c}},
		"definitions before everything else": {
			map[Key]int{c: 9, d: 1}, narrow(c), nil, 1, narrow(d), []Key{c},
		},
		"the same ones every time": {map[Key]int{role: 1, c: 1}, nil, nil, 1, narrow(role), []Key{c}},
		"nothing is wide without namespaces": {
			map[Key]int{role: 1, d: 1}, nil, nil, 1, narrow(d), []Key{role},
		},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, beyond := choose(tc.wanted, runs(tc.running), tc.fares, tc.limit)
			assert.ElementsMatch(t, tc.chosen, chosen)
			assert.Equal(t, tc.beyond, beyond)
		})
	}
}

// TestWatchesStayWithinTheLimitAndNothingFlaps lets claims come and go, and wide watches list or fail, at random.
func TestWatchesStayWithinTheLimitAndNothingFlaps(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 29))
		limit := 1 + random.IntN(12)
		wanted, fares := map[Key]int{}, map[schema.GroupVersionResource]fare{}
		var running []scope
		for range 20 {
			key := watchOf([]string{"configmaps", "secrets", "pods"}[random.IntN(3)], strconv.Itoa(random.IntN(8)))
			switch random.IntN(5) {
			case 0:
				delete(wanted, key)
			case 1:
				key = []Key{Definitions(), watchOf("clusterroles", "")}[random.IntN(2)]
				wanted[key]++
			default:
				wanted[key]++
			}
			chosen, beyond := choose(wanted, runs(running), fares, limit)
			counted := 0
			for _, one := range chosen {
				if !one.wide || fares[one.Resource] != fails {
					counted++
				}
			}
			require.LessOrEqual(t, counted, limit, "seed %d", seed)
			for key := range wanted {
				covered := slices.ContainsFunc(chosen, func(s scope) bool {
					return s.covers(key) && (!s.wide || fares[s.Resource] != fails)
				})
				require.NotEqual(t, covered, slices.Contains(beyond, key), "seed %d: %s", seed, key)
			}
			again, _ := choose(wanted, runs(chosen), fares, limit)
			require.ElementsMatch(t, chosen, again, "seed %d", seed)
			running = chosen
			maps.DeleteFunc(fares, func(of schema.GroupVersionResource, _ fare) bool {
				return !slices.Contains(running, everywhere(of))
			})
			for _, one := range running {
				if one.wide {
					fares[one.Resource] = fare(random.IntN(3))
				}
			}
		}
	}
}

// inNamespace is the metadata of a ConfigMap.
func inNamespace(namespace, name, version string) *metav1.PartialObjectMetadata {
	object := partial(name, version)
	object.Namespace = namespace
	return object
}

// many are claims of one ConfigMap in each of so many namespaces.
func many(namespaces int) map[manifest.ID]Key {
	all := map[manifest.ID]Key{}
	for i := range namespaces {
		key := watchOf("configmaps", "ns-"+strconv.Itoa(i))
		all[manifest.ID{Resource: "configmaps", Namespace: key.Namespace, Name: "a"}] = key
	}
	return all
}

// Shows: work/watches-wide
func TestBeyondTheBoundAResourceIsWatchedInAllNamespaces(t *testing.T) {
	events := watch.NewFake()
	r := runWith(t, 2, time.Hour, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			assert.Empty(t, action.GetNamespace())
			return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []runtime.RawExtension{
				{Object: inNamespace("ns-0", "a", "5")}, {Object: inNamespace("ns-0", "of-others", "6")},
				{Object: inNamespace("ns-1", "a", "7")},
			}}, nil
		})
		c.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, events, nil
		})
	})
	h, all := Owner{Name: "w"}, many(3)
	r.store.Claim(h, all, nil)
	id := func(namespace string) manifest.ID {
		return manifest.ID{Resource: "configmaps", Namespace: namespace, Name: "a"}
	}
	for namespace, version := range map[string]string{"ns-0": "5", "ns-1": "7", "ns-2": "8"} {
		r.store.Record(h, id(namespace), State{Object: Object{Exists: true, Version: version}})
	}
	gone := func() bool { _, drift := r.store.Look(h, id("ns-2")); return drift == Deleted }
	require.Eventually(t, gone, waitFor, tick, "what is not in the list does not exist")
	for one := range all {
		assert.False(t, r.store.Unwatched(h, one))
	}
	woken := r.wokenBy(h)
	events.Modify(inNamespace("ns-9", "a", "11"))
	events.Modify(inNamespace("ns-1", "a", "12"))
	require.Eventually(t, func() bool { return r.wokenBy(h) == woken+1 }, waitFor, tick)
	assert.Equal(t, Size{Works: 1, Objects: 3, Wanted: 3}, r.store.Size())
}

func TestWhereAWideWatchIsRefusedNamespacesAreWatchedUpToTheBound(t *testing.T) {
	r := runWith(t, 2, time.Hour, func(c *fake.FakeMetadataClient) {
		c.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetNamespace() == "" {
				return true, nil, apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)
			}
			return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
		})
	})
	h, all := Owner{Name: "w"}, many(3)
	r.store.Claim(h, all, nil)
	require.Eventually(t, func() bool {
		return r.store.Size() == Size{Works: 1, Objects: 3, Wanted: 3, Beyond: 1}
	}, waitFor, tick)
	unwatched := 0
	for one := range all {
		if r.store.Unwatched(h, one) {
			unwatched++
		}
	}
	assert.Equal(t, 1, unwatched, "its work looks for itself")
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
