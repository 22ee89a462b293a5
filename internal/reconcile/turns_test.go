package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "c1", Name: name}}
}

func names(of []reconcile.Request) []string {
	all := make([]string, len(of))
	for i, one := range of {
		all[i] = one.Name
	}
	return all
}

func all(name string) []reconcile.Request { return []reconcile.Request{named(name)} }

func TestLongPassesLeaveWorkersToShortOnes(t *testing.T) {
	c := Turns{most: 2}
	require.True(t, c.Enter(named("a"), true))
	require.True(t, c.Enter(named("b"), true))
	assert.False(t, c.Enter(named("c"), true), "both turns are taken")
	assert.False(t, c.Enter(named("c"), true), "it waits")
	assert.False(t, c.Enter(named("d"), true))
	assert.True(t, c.Enter(named("small"), false), "a short pass never waits")
	assert.Empty(t, c.Leave(named("small")))
	assert.Equal(t, all("c"), c.Leave(named("a")))
	assert.False(t, c.Enter(named("a"), true), "one that comes again waits behind the others")
	require.True(t, c.Enter(named("c"), true), "it has its turn")
	assert.Equal(t, all("d"), c.Leave(named("b")))
	assert.Equal(t, all("a"), c.Leave(named("d")), "it is gone, and does not need the turn that is kept for it")
	require.True(t, c.Enter(named("a"), true))
	assert.False(t, c.Enter(named("e"), true))
	assert.True(t, c.Enter(named("e"), false), "it shrank")
	assert.Empty(t, c.Leave(named("e")))
	assert.Empty(t, c.Leave(named("a")))
	assert.Empty(t, c.Leave(named("c")))
	assert.Empty(t, c.taken)
	var none Turns
	assert.True(t, none.Enter(named("a"), true))
	assert.True(t, none.Enter(named("b"), true))
	assert.Empty(t, none.Leave(named("a")))
}

// TestEveryObjectHasItsTurn plays the queue: objects come, change, go, and come again as soon as their pass ends.
func TestEveryObjectHasItsTurn(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const works, most = 12, 3
		c := Turns{most: most}
		queued, running, waiting := []string{}, map[string]bool{}, map[string]int{}
		for i := range works {
			queued = append(queued, fmt.Sprint(i))
		}
		for step := range 5000 {
			if len(queued) > 0 && random.IntN(2) == 0 {
				name := queued[0]
				queued = queued[1:]
				if random.IntN(20) == 0 { // it is gone, and made again
					queued = append(append(queued, names(c.Leave(named(name)))...), name)
					delete(waiting, name)
					continue
				}
				if large := random.IntN(4) > 0; c.Enter(named(name), large) {
					running[name] = large
					delete(waiting, name)
				} else if _, waits := waiting[name]; !waits {
					waiting[name] = step
				}
			} else if len(running) > 0 {
				all := slices.Sorted(maps.Keys(running))
				name := all[random.IntN(len(all))]
				queued = append(append(queued, names(c.Leave(named(name)))...), name)
				delete(running, name)
			}
			taken := 0
			for _, large := range running {
				if large {
					taken++
				}
			}
			require.LessOrEqual(t, taken, most, "seed %d", seed)
			for name, since := range waiting {
				require.Less(t, step-since, 60*works, "seed %d: %s has no turn", seed, name)
			}
		}
	}
}

// TestAnObjectThatWaitsForItsTurnKeepsItsBackOff: a pass that only finds that its object has to wait is no success.
func TestAnObjectThatWaitsForItsTurnKeepsItsBackOff(t *testing.T) {
	c := &Turns{most: 1}
	limiter := patient{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Hour), c}
	w := named("w")
	require.Equal(t, time.Second, limiter.When(w))
	require.True(t, c.Enter(named("other"), true))
	require.False(t, c.Enter(w, true))
	limiter.Forget(w)
	require.Equal(t, 2*time.Second, limiter.When(w), "it waits")
	require.Equal(t, all("w"), c.Leave(named("other")))
	limiter.Forget(w)
	require.Equal(t, 4*time.Second, limiter.When(w), "its turn is kept, and it has not passed yet")
	require.True(t, c.Enter(w, true))
	c.Leave(w)
	limiter.Forget(w)
	assert.Equal(t, time.Second, limiter.When(w), "it has passed")
}
