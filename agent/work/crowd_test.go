package work

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLargeWorksHaveTheirPassesOneAfterTheOther(t *testing.T) {
	var c crowd
	require.True(t, c.enter("a", maxCrowd/2))
	assert.False(t, c.enter("b", maxCrowd/2+1), "both together have more than there is room for")
	assert.False(t, c.enter("b", maxCrowd/2+1), "it waits")
	assert.True(t, c.enter("small", smallWork), "a small work never waits")
	assert.False(t, c.enter("c", maxCrowd/2), "there is room for it, but another one came before")
	assert.Empty(t, c.leave("small", smallWork))
	assert.Equal(t, []string{"b"}, c.leave("a", maxCrowd/2), "only one has room")
	assert.False(t, c.enter("a", maxCrowd/2), "one that comes again waits, too")
	require.True(t, c.enter("b", maxCrowd/2+1), "it has its turn")
	assert.Equal(t, []string{"c", "a"}, c.leave("b", maxCrowd/2+1))
	assert.Empty(t, c.leave("c", 0), "it is gone and has no pass")
	require.True(t, c.enter("a", maxCrowd/2))
	assert.False(t, c.enter("huge", 2*maxCrowd))
	assert.Equal(t, []string{"huge"}, c.leave("a", maxCrowd/2))
	require.True(t, c.enter("huge", 2*maxCrowd), "one that is larger than the room has it alone")
	assert.False(t, c.enter("a", smallWork+1), "until its pass ends")
	assert.Empty(t, c.leave("a", 0), "it shrank or is gone")
	assert.Empty(t, c.leave("huge", 2*maxCrowd))
	assert.Zero(t, c.bytes)
}

// TestEveryWorkHasItsTurn plays the queue: works come, change, go, and come again as soon as their pass ends.
func TestEveryWorkHasItsTurn(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var c crowd
		const works = 12
		queued, running, waiting := []string{}, map[string]int{}, map[string]int{}
		for i := range works {
			queued = append(queued, fmt.Sprint(i))
		}
		for step := range 5000 {
			if len(queued) > 0 && random.IntN(2) == 0 {
				name := queued[0]
				queued = queued[1:]
				if random.IntN(20) == 0 { // it is gone, and made again
					queued = append(append(queued, c.leave(name, 0)...), name)
					delete(waiting, name)
					continue
				}
				size := random.IntN(maxCrowd)
				if c.enter(name, size) {
					running[name] = size
					delete(waiting, name)
				} else if _, waits := waiting[name]; !waits {
					waiting[name] = step
				}
			} else if len(running) > 0 {
				var names []string
				for name := range running {
					names = append(names, name)
				}
				slices.Sort(names)
				name := names[random.IntN(len(names))]
				queued = append(append(queued, c.leave(name, running[name])...), name)
				delete(running, name)
			}
			used := 0
			for _, size := range running {
				if size > smallWork {
					used += size
				}
			}
			require.LessOrEqual(t, used, maxCrowd, "seed %d", seed)
			for name, since := range waiting {
				require.Less(t, step-since, 60*works, "seed %d: work %s has no turn", seed, name)
			}
		}
	}
}
