package virtual

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var ways = flag.Int("ways", 12, "ways to one state that are compared with the straight one")

// onWay runs a test with a hub without agents, in a bubble.
func onWay(t *testing.T, take func(*testing.T, way)) {
	t.Helper()
	onHub(t, apis()[0], take)
}

// onHub is onWay on a hub that has the add-on API in some way.
func onHub(t *testing.T, api apiOf, take func(*testing.T, way)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		t.Helper()
		definitions, err := api.definitions()
		require.NoError(t, err)
		o := Options{Dir: t.TempDir(), Log: logr.Discard(), Definitions: definitions}
		w, err := newWay(t.Context(), o, api.served...)
		require.NoError(t, err)
		defer w.Stop()
		take(t, w)
	})
}

// goStraight writes what people want, and returns the state to which that leads.
func goStraight(t *testing.T, w way) map[string]string {
	t.Helper()
	for _, o := range finals() {
		require.NoError(t, w.put(o))
	}
	require.NoError(t, w.settle(nil))
	state, err := w.read()
	require.NoError(t, err)
	return state
}

// arrive waits for a state, after which nothing is written any more.
func arrive(t *testing.T, w way, want map[string]string, told []string) {
	t.Helper()
	if err := w.settle(want); err != nil {
		t.Log(strings.Join(told, "\n"))
		t.Fatal(err)
	}
	assert.Empty(t, w.writes(), "writes after all is as it should be")
}

// TestLiesDeleteNothing: while the hub lies to its manager, images and levels change, Placements are replaced, and the
// manager starts again. Nobody asks for a deletion.
// Shows: invariants/lies-delete-nothing
func TestLiesDeleteNothing(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	lies := map[string]int{}
	for seed := range max(*ways/2, 3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			onWay(t, func(t *testing.T, w way) {
				t.Helper()
				state := goStraight(t, w)
				before := w.way.written()
				told, err := w.edit(rand.New(rand.NewPCG(uint64(seed), 22)), 20)
				require.NoError(t, err)
				arrive(t, w, state, told)
				for _, request := range w.way.more(before) {
					// Contents of configurations that nobody has any more may go, and pages of a Placement that was replaced.
					if strings.HasPrefix(request, http.MethodDelete) && !strings.Contains(request, "/controllerrevisions/") &&
						!strings.Contains(request, "/placementdecisions/") {
						t.Log(strings.Join(told, "\n"))
						t.Fatal("the hub manager sent ", request)
					}
				}
				for name, count := range w.way.told() {
					lies[name] += count
				}
			})
		})
	}
	t.Log("lies: ", lies)
	for _, name := range []string{"refuse", "lose", "stale", "late", "twice", "expire", "hang", "cut"} {
		assert.NotZero(t, lies[name], "lies of kind %s", name)
	}
}

// TestTwoWaysToOneState compares works, add-ons, decisions and bindings after a straight way and after others. A page of
// decisions may have another number.
// Shows: invariants/two-ways
func TestTwoWaysToOneState(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	var straight map[string]string
	onWay(t, func(t *testing.T, w way) {
		t.Helper()
		straight = goStraight(t, w)
	})
	kinds := map[string]int{}
	for name := range straight {
		kinds[strings.Fields(name)[0]]++
	}
	assert.Equal(t, wayClusters, kinds["ManifestWork"], "each cluster has a work: %v", kinds)
	for _, lies := range []bool{false, true} {
		for seed := range *ways {
			t.Run(fmt.Sprintf("seed %d, lies %t", seed, lies), func(t *testing.T) {
				onWay(t, func(t *testing.T, w way) {
					t.Helper()
					told, err := w.wander(rand.New(rand.NewPCG(uint64(seed), 21)), lies)
					require.NoError(t, err)
					arrive(t, w, straight, told)
				})
			})
		}
	}
}
