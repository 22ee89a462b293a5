package watch

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

	"github.com/spokelet/spokelet/agent/work/manifest"
)

func watchOf(resource, namespace string) Key {
	return Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: namespace}
}

func TestWhichWatchesThereAre(t *testing.T) {
	a, b, c, d := watchOf("configmaps", "a"), watchOf("configmaps", "b"), watchOf("secrets", "a"), Definitions()
	for name, tc := range map[string]struct {
		wanted         map[Key]int
		running        []Key
		limit          int
		chosen, beyond []Key
	}{
		"all of them when there is room":     {map[Key]int{a: 1, b: 1}, nil, 2, []Key{a, b}, nil},
		"those with most objects first":      {map[Key]int{a: 1, b: 3, c: 2}, nil, 2, []Key{b, c}, []Key{a}},
		"what runs goes on":                  {map[Key]int{a: 1, b: 3, c: 2}, []Key{a}, 2, []Key{a, b}, []Key{c}},
		"definitions before everything else": {map[Key]int{a: 9, d: 1}, []Key{a}, 1, []Key{d}, []Key{a}},
		"the same ones every time":           {map[Key]int{c: 1, b: 1, a: 1}, nil, 1, []Key{a}, []Key{b, c}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := map[Key]bool{}
			for _, key := range tc.running {
				runs[key] = true
			}
			chosen, beyond := choose(tc.wanted, func(key Key) bool { return runs[key] }, tc.limit)
			assert.ElementsMatch(t, tc.chosen, chosen)
			assert.Equal(t, tc.beyond, beyond)
		})
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
