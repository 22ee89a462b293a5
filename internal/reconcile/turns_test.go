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
	require.True(t, c.Enter(named("a"), Long))
	require.True(t, c.Enter(named("b"), Long))
	assert.False(t, c.Enter(named("c"), Long), "both turns are taken")
	assert.False(t, c.Enter(named("c"), Long), "it waits")
	assert.False(t, c.Enter(named("d"), Long))
	assert.True(t, c.Enter(named("small"), Short), "a short pass never waits")
	assert.Empty(t, c.Leave(named("small")))
	assert.Equal(t, all("c"), c.Leave(named("a")))
	assert.False(t, c.Enter(named("a"), Long), "one that comes again waits behind the others")
	require.True(t, c.Enter(named("c"), Long), "it has its turn")
	assert.Equal(t, all("d"), c.Leave(named("b")))
	assert.Equal(t, all("a"), c.Leave(named("d")), "it is gone, and does not need the turn that is kept for it")
	require.True(t, c.Enter(named("a"), Long))
	assert.False(t, c.Enter(named("e"), Long))
	assert.True(t, c.Enter(named("e"), Short), "it shrank")
	assert.Empty(t, c.Leave(named("e")))
	assert.Empty(t, c.Leave(named("a")))
	assert.Empty(t, c.Leave(named("c")))
	assert.Empty(t, c.taken)
	var none Turns
	assert.True(t, none.Enter(named("a"), Long))
	assert.True(t, none.Enter(named("b"), Long))
	assert.Empty(t, none.Leave(named("a")))
}

// TestWhatMayEndTheWaitingIsNext: large works wait for a webhook that does not answer, and its work is deleted. Deletions
// without end do not keep the others from their turns.
func TestWhatMayEndTheWaitingIsNext(t *testing.T) {
	c := Turns{most: 1}
	require.True(t, c.Enter(named("a"), Long))
	for _, name := range []string{"b", "c", "webhook", "d"} {
		require.False(t, c.Enter(named(name), Long))
	}
	require.False(t, c.Enter(named("webhook"), LongFirst), "those that have their turn come first")
	require.False(t, c.Enter(named("webhook"), LongFirst))
	require.False(t, c.Enter(named("e"), LongFirst))
	require.False(t, c.Enter(named("f"), LongFirst))
	require.False(t, c.Enter(named("late"), Long))
	now := "a"
	for _, next := range []string{"webhook", "b", "e", "c", "f", "d", "late"} {
		require.Equal(t, all(next), c.Leave(named(now)))
		require.True(t, c.Enter(named(next), Long))
		now = next
	}
	require.False(t, c.Enter(named("g"), LongFirst))
	require.False(t, c.Enter(named("g"), Long), "it is made again")
	require.Equal(t, all("g"), c.Leave(named(now)))
	assert.Empty(t, c.Leave(named("g")))
	assert.True(t, c.Enter(named("h"), LongFirst))
}

// TestATenantWithManyObjectsDoesNotHoldUpOthers: sixty Placements of one namespace wait.
// Shows: hub/turns-of-tenants
func TestATenantWithManyObjectsDoesNotHoldUpOthers(t *testing.T) {
	of := func(namespace, name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	c := Turns{most: 2}
	for i := range 60 {
		require.Equal(t, i < 2, c.Enter(of("many", fmt.Sprint(i)), Long))
	}
	for _, name := range []string{"a", "b", "c"} {
		require.False(t, c.Enter(of("few", name), Long))
	}
	require.False(t, c.Enter(of("one", "x"), Long))
	for _, turn := range []struct{ ends, next reconcile.Request }{
		{of("many", "0"), of("few", "a")}, {of("many", "1"), of("one", "x")}, {of("one", "x"), of("many", "2")},
		{of("few", "a"), of("few", "b")}, {of("many", "2"), of("many", "3")}, {of("few", "b"), of("few", "c")},
		{of("few", "c"), of("many", "4")}, {of("many", "3"), of("many", "5")},
	} {
		require.Equal(t, []reconcile.Request{turn.next}, c.Leave(turn.ends))
		require.True(t, c.Enter(turn.next, Long))
	}
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
				pass := Length(random.IntN(3))
				if c.Enter(named(name), pass) {
					running[name] = pass != Short
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
	require.True(t, c.Enter(named("other"), Long))
	require.False(t, c.Enter(w, Long))
	limiter.Forget(w)
	require.Equal(t, 2*time.Second, limiter.When(w), "it waits")
	require.Equal(t, all("w"), c.Leave(named("other")))
	limiter.Forget(w)
	require.Equal(t, 4*time.Second, limiter.When(w), "its turn is kept, and it has not passed yet")
	require.True(t, c.Enter(w, Long))
	c.Leave(w)
	limiter.Forget(w)
	assert.Equal(t, time.Second, limiter.When(w), "it has passed")
}
