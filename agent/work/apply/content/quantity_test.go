package content

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Shows: security/expressions-take-little-memory
//
// Any author of a work, and a user who may change what a work applied, writes texts that the agent compares as
// quantities. The exponent is small for a test: with 2147483640, the worker never ends and takes all memory.
func TestATextThatLooksLikeAQuantityIsComparedAtOnce(t *testing.T) {
	const most = 100 << 10
	var before, after runtime.MemStats
	for _, text := range []string{"1e-4000000", "1E-4000000", "0.1e-4000000", "-1e-4000000", "1e4000000"} {
		for _, pair := range [][2]any{{text, "1"}, {"1", text}} {
			runtime.ReadMemStats(&before)
			same := Resembles(map[string]any{"a": pair[0]}, map[string]any{"a": pair[1]})
			runtime.ReadMemStats(&after)
			assert.False(t, same, text)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), text)
		}
	}
}
