package virtual

import (
	"flag"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var scenes = flag.String("scenes", ".", "regular expression of the names of the scenarios to play with works")

// Shows: invariants/works-agree, invariants/nothing-taken, invariants/nothing-left, invariants/nothing-made
// Shows: invariants/typing-error, invariants/repaired, invariants/secret-stays, invariants/deletion-order
// Shows: invariants/older-hub, invariants/older-cluster, invariants/bounded
// Shows: invariants/no-loop, invariants/quiet, invariants/comes-back
func TestADayOfWorks(t *testing.T) {
	selected := regexp.MustCompile(*scenes)
	playDay(t, func(t *testing.T, o Options) ([]string, *judge) {
		t.Helper()
		f, err := newFleet(t.Context(), o)
		require.NoError(t, err)
		defer f.stop()
		violations, err := f.run(t.Context(), *seed, selected.MatchString)
		require.NoError(t, err)
		return violations, f.judge
	})
}
