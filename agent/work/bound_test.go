package work

import (
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
)

func watchOf(resource, namespace string) watchKey {
	return watchKey{resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace: namespace}
}

func TestWhichWatchesThereAre(t *testing.T) {
	a, b, c, d := watchOf("configmaps", "a"), watchOf("configmaps", "b"), watchOf("secrets", "a"), definitionsKey()
	for name, tc := range map[string]struct {
		wanted         map[watchKey]int
		running        []watchKey
		limit          int
		chosen, beyond []watchKey
	}{
		"all of them when there is room":     {map[watchKey]int{a: 1, b: 1}, nil, 2, []watchKey{a, b}, nil},
		"those with most objects first":      {map[watchKey]int{a: 1, b: 3, c: 2}, nil, 2, []watchKey{b, c}, []watchKey{a}},
		"what runs goes on":                  {map[watchKey]int{a: 1, b: 3, c: 2}, []watchKey{a}, 2, []watchKey{a, b}, []watchKey{c}},
		"definitions before everything else": {map[watchKey]int{a: 9, d: 1}, []watchKey{a}, 1, []watchKey{d}, []watchKey{a}},
		"the same ones every time":           {map[watchKey]int{c: 1, b: 1, a: 1}, nil, 1, []watchKey{a}, []watchKey{b, c}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := map[watchKey]bool{}
			for _, key := range tc.running {
				runs[key] = true
			}
			chosen, beyond := choose(tc.wanted, func(key watchKey) bool { return runs[key] }, tc.limit)
			assert.ElementsMatch(t, tc.chosen, chosen)
			assert.Equal(t, tc.beyond, beyond)
		})
	}
}

func TestBeyondTheBoundObjectsAreLookedAtNowAndThen(t *testing.T) {
	r := runWith(t, 1, time.Hour, func(*fake.FakeMetadataClient) {})
	first, second := holder{name: "first"}, holder{name: "second"}
	there := identity{Resource: "secrets", Namespace: "ns", Name: "b"}
	r.ledger.claim(first, claims("a", "c"), nil)
	r.ledger.claim(second, map[identity]watchKey{there: watchOf("secrets", "ns")}, nil)
	require.Eventually(t, func() bool { return r.ledger.unwatched(second, there) }, waitFor, tick)
	assert.Equal(t, 1, r.wokenBy(second), "its work looks for itself")
	assert.False(t, r.ledger.unwatched(first, thing("a")))
	assert.Equal(t, sizes{works: 2, objects: 3, wanted: 2, beyond: 1}, r.ledger.size())

	r.ledger.claim(first, nil, nil)
	require.Eventually(t, func() bool { return !r.ledger.unwatched(second, there) }, waitFor, tick, "there is room again")
	assert.Equal(t, sizes{works: 1, objects: 1, wanted: 1}, r.ledger.size())
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
	h := holder{name: "w"}
	r.ledger.claim(h, claims("a"), nil)
	r.ledger.note(h, thing("a"), record{exists: true, version: "10"})
	require.Eventually(t, func() bool { return r.wokenBy(h) > 0 }, waitFor, tick, "the next list shows what was missed")
	_, heard := r.ledger.look(h, thing("a"))
	assert.Equal(t, newsGone, heard)
}
