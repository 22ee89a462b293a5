package ignore

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Shows: security/expressions-take-little-memory
//
// Ten works are applied at once, with 128 MiB.
func TestAnExpressionOfAnAuthorTakesLittleMemory(t *testing.T) {
	const most = 8 << 20
	text := `.data | select(.a | test("(` + strings.Repeat(".", 240) + `){1000}"))`
	entries := []workv1.IgnoreField{{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JQPathExpressions: []string{text}}}
	object := map[string]any{"data": map[string]any{"a": "x"}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Fields(t.Context(), object, entries, workv1.IgnoreFieldsConditionOnSpokePresent)
	require.ErrorContains(t, err, "instructions, more than the limit of 500")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
}
