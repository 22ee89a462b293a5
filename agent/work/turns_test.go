package work

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestLargeWorksLeaveWorkersToSmallOnes(t *testing.T) {
	c := turns{most: 2}
	require.True(t, c.enter("a", true))
	require.True(t, c.enter("b", true))
	assert.False(t, c.enter("c", true), "both turns are taken")
	assert.False(t, c.enter("c", true), "it waits")
	assert.False(t, c.enter("d", true))
	assert.True(t, c.enter("small", false), "a small work never waits")
	assert.Empty(t, c.leave("small", false))
	assert.Equal(t, []string{"c"}, c.leave("a", true))
	assert.False(t, c.enter("a", true), "one that comes again waits behind the others")
	require.True(t, c.enter("c", true), "it has its turn")
	assert.Equal(t, []string{"d"}, c.leave("b", true))
	assert.Equal(t, []string{"a"}, c.leave("d", false), "it is gone, and does not need the turn that is kept for it")
	require.True(t, c.enter("a", true))
	assert.False(t, c.enter("e", true))
	assert.True(t, c.enter("e", false), "it shrank")
	assert.Empty(t, c.leave("e", false))
	assert.Empty(t, c.leave("a", true))
	assert.Empty(t, c.leave("c", true))
	assert.Zero(t, c.taken)
	var none turns
	assert.True(t, none.enter("a", true))
	assert.True(t, none.enter("b", true))
	assert.Empty(t, none.leave("a", true))
}

// TestEveryWorkHasItsTurn plays the queue: works come, change, go, and come again as soon as their pass ends.
func TestEveryWorkHasItsTurn(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const works, most = 12, 3
		c := turns{most: most}
		queued, running, waiting := []string{}, map[string]bool{}, map[string]int{}
		for i := range works {
			queued = append(queued, fmt.Sprint(i))
		}
		for step := range 5000 {
			if len(queued) > 0 && random.IntN(2) == 0 {
				name := queued[0]
				queued = queued[1:]
				if random.IntN(20) == 0 { // it is gone, and made again
					queued = append(append(queued, c.leave(name, false)...), name)
					delete(waiting, name)
					continue
				}
				if large := random.IntN(4) > 0; c.enter(name, large) {
					running[name] = large
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
			taken := 0
			for _, large := range running {
				if large {
					taken++
				}
			}
			require.LessOrEqual(t, taken, most, "seed %d", seed)
			for name, since := range waiting {
				require.Less(t, step-since, 60*works, "seed %d: work %s has no turn", seed, name)
			}
		}
	}
}

func TestAWorkIsLargeByItsManifestsOrItsRules(t *testing.T) {
	of := func(sizes ...int) *workv1.ManifestWork {
		w := &workv1.ManifestWork{}
		for _, size := range sizes {
			var m workv1.Manifest
			m.Raw = make([]byte, size)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m)
		}
		return w
	}
	assert.False(t, isLarge(of()))
	assert.False(t, isLarge(of(largeManifest, largeManifest, largeManifest)))
	assert.True(t, isLarge(of(1, largeManifest+1)))
	assert.True(t, isLarge(of(slices.Repeat([]int{largeManifest}, 5)...)))

	ruled := of(slices.Repeat([]int{1}, 40)...)
	rule := workv1.ConditionRule{CelExpressions: []string{strings.Repeat("x", 300)}, MessageExpression: strings.Repeat("y", 300)}
	ruled.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{ConditionRules: slices.Repeat([]workv1.ConditionRule{rule}, 10)}}
	assert.False(t, isLarge(ruled))
	ruled.Spec.ManifestConfigs[0].ConditionRules = slices.Repeat([]workv1.ConditionRule{rule}, 11)
	assert.True(t, isLarge(ruled), "each manifest may have all of them")
}
