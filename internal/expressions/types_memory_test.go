package expressions

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// As lists in each other, functions that return a type of the type of their argument make types that the checker copies
// again and again. 240 of them are 3,140 bytes, and took a minute and 4.5 gigabytes; 120 of them are enough to see it.
func TestToCheckTypesTakesLittleMemory(t *testing.T) {
	const levels, most = 120, 32 << 20
	env := environment(t)
	for sentence, expression := range map[string]string{
		"control: lists":                       strings.Repeat("[", levels) + strings.Repeat("]", levels) + " == []",
		"control: a function of the same type": strings.Repeat("dyn(", levels) + "1" + strings.Repeat(")", levels) + " == 1",
		"optional.of":                          strings.Repeat("optional.of(", levels) + "1" + strings.Repeat(")", levels) + " == optional.none()",
		"optional.ofNonZeroValue":              strings.Repeat("optional.ofNonZeroValue(", levels) + "1" + strings.Repeat(")", levels) + " == optional.none()",
		"type":                                 strings.Repeat("type(", levels) + "1" + strings.Repeat(")", levels) + " == int",
	} {
		t.Run(sentence, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Compile(env, expression)
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes: %d MiB, %v", len(expression), (after.TotalAlloc-before.TotalAlloc)>>20, err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), "it is refused, or its types are checked in little memory")
		})
	}
}
