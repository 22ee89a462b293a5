package virtual

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var ways = flag.Int("ways", 12, "ways to one state that are compared with the straight one")

// TestTwoWaysToOneState compares works, add-ons, decisions and bindings after a straight way and after others. A page of
// decisions may have another number.
// Shows: invariants/two-ways
func TestTwoWaysToOneState(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	onWay := func(t *testing.T, take func(*testing.T, way)) {
		t.Helper()
		inBubble(t, func(t *testing.T) {
			t.Helper()
			w, err := newWay(t.Context(), Options{Dir: t.TempDir(), Log: logr.Discard()})
			require.NoError(t, err)
			defer w.Stop()
			take(t, w)
		})
	}
	var straight map[string]string
	onWay(t, func(t *testing.T, w way) {
		t.Helper()
		for _, o := range finals() {
			require.NoError(t, w.put(o))
		}
		require.NoError(t, w.settle(nil))
		var err error
		straight, err = w.read()
		require.NoError(t, err)
	})
	kinds := map[string]int{}
	for name := range straight {
		kinds[strings.Fields(name)[0]]++
	}
	assert.Equal(t, wayClusters, kinds["ManifestWork"], "each cluster has a work: %v", kinds)
	for seed := range *ways {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			onWay(t, func(t *testing.T, w way) {
				t.Helper()
				told, err := w.wander(rand.New(rand.NewPCG(uint64(seed), 21)))
				require.NoError(t, err)
				if err := w.settle(straight); err != nil {
					t.Log(strings.Join(told, "\n"))
					t.Error(err)
				}
			})
		})
	}
}
