package expressions

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is an expression of a list of one entry that contains one that contains ten, and so on: few bytes, and few
// values, because each level names the one below ten times.
func shared(levels int) string {
	return "[0]" + strings.Repeat(".map(a,[a,a,a,a,a,a,a,a,a,a])", levels)
}

// counted counts how often an entry of a map is looked up.
type counted struct {
	traits.Mapper

	finds *int
}

func (c counted) Find(key ref.Val) (ref.Val, bool) { *c.finds++; return c.Mapper.Find(key) }

// manyEntries returns a map of many entries that counts its look-ups.
func manyEntries(finds *int) counted {
	entries := map[string]any{}
	for i := range 20_000 {
		entries[fmt.Sprint("key", i)] = int64(i)
	}
	mapper, _ := types.DefaultTypeAdapter.NativeToValue(entries).(traits.Mapper)
	return counted{mapper, finds}
}

// Shows: security/expressions-take-little-memory
func TestWhatAnExpressionMakesOfSharedPartsHasABound(t *testing.T) {
	env := environment(t)
	deep := shared(9)
	for sentence, expression := range map[string]string{
		"lists that are compared":       deep + " == " + deep,
		"lists that differ":             deep + " != " + shared(9),
		"one that is sought":            deep + " in [" + deep + "]",
		"one whose place is sought":     "[" + deep + "].indexOf(" + deep + ") == 0",
		"one that an error quotes":      "[?dyn(" + deep + ")] == []",
		"one that is no key":            `{"a": 1}[dyn(` + deep + ")] == 1",
		"one that is a text":            `"%s".format([` + deep + `]) == ""`,
		"maps":                          `[0]` + strings.Repeat(`.map(a,{"a":a,"b":a,"c":a,"d":a,"e":a})`, 12) + ` == []`,
		"what may be missing":           `[0]` + strings.Repeat(`.map(a,[optional.of(a),optional.of(a),optional.of(a)])`, 15) + ` == []`,
		"lists that are added":          `[0]` + strings.Repeat(`.map(a,[a]+[a]+[a])`, 20) + ` == []`,
		"lists by loops":                `[0]` + strings.Repeat(`.map(a,[0,1,2,3].map(i,a))`, 14) + ` == []`,
		"lists by filters":              `[0]` + strings.Repeat(`.map(a,[a,a,a,a].filter(i,true))`, 14) + ` == []`,
		"what is tried again and again": "[0,1,2,3,4,5,6,7,8,9].exists(i, " + deep + " == dyn(i))",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, cost, err := evaluated(t, env, expression, "")
			require.ErrorContains(t, err, "the list or map would be longer than 4194304 bytes")
			assert.Less(t, cost, uint64(20_000), "it is refused where it is made, not where it is used")
		})
	}
}

func TestWhatAnExpressionMakesIsWhatCELMakes(t *testing.T) {
	env := environment(t)
	for _, expression := range []string{
		`[1, 2].map(x, x + 1) == [2, 3]`, `[1, 2, 3].filter(x, x > 1) + [4] == [2, 3, 4]`, `([text] + []) == [text]`,
		`[text][0] == text`, `{"k": [text]}.k[0] == text`, `{"k": text}["k"] == text`, `has({"k": text}.k)`,
		`[[text]].map(x, x.map(y, y)) == [[text]]`, `text in [text]`, `"k" in {"k": text}`, `{"k": text}.map(k, k) == ["k"]`,
		`[text, text].join("-") == text + "-" + text`, `"%s".format([[text, {"k": text}]]) == "[" + text + ", {k: " + text + "}]"`,
		`optional.ofNonZeroValue([text].filter(x, false)) == optional.none()`, `[?optional.of(text)] == [text]`,
		`optional.ofNonZeroValue({?"k": optional.none()}) == optional.none()`, `{"k": text} == {"k": text}`,
		`[[text], [text]].all(x, x.size() == 1)`, `type([text]) == list`, `type({"k": text}) == map`, `[3, 1].map(x, x).min() == 1`,
		`[text].map(x, {x: x})[0][text] == text`, `optional.of(text).optMap(t, [t]).value() == [text]`, `b"a" + b"b" == b"ab"`,
		`duration("1s") + duration("2s") == duration("3s")`, `dyn([1]) + dyn([2]) == [1, 2]`, `[1, 1].map(x, [x]).indexOf([1]) == 0`,
	} {
		found, _, err := evaluated(t, env, expression, "v")
		require.NoError(t, err, expression)
		assert.Equal(t, true, found, expression)
	}
	_, _, err := evaluated(t, env, `dyn([text]) + dyn(1) == []`, "v")
	require.ErrorContains(t, err, "no such overload")
	_, _, err = evaluated(t, env, `[1].map(x, dyn(x) + dyn("a")) == []`, "v")
	require.ErrorContains(t, err, "no such overload")
}

func TestAListOfAsManyNumbersAsItMayHaveIsNotTooLarge(t *testing.T) {
	list := func(length int) ref.Val { return types.DefaultTypeAdapter.NativeToValue(make([]int64, length)) }
	assert.False(t, types.IsError(made(list(maxItems))))
	assert.True(t, types.IsError(made(list(2*maxItems))))
}

func TestTheEstimateOfAComparisonCostsNoMoreThanItSays(t *testing.T) {
	finds := 0
	large := manyEntries(&finds)
	small := types.DefaultTypeAdapter.NativeToValue(map[string]any{"a": int64(1)})
	(&costs{patterns: &patterns{}}).CallCost("_!=_", "not_equals", []ref.Val{large, small}, types.True)
	assert.Zero(t, finds, "the comparison itself sees that the sizes differ")

	few := types.OptionalOf(small)
	(&costs{patterns: &patterns{}}).CallCost("_!=_", "not_equals", []ref.Val{types.OptionalOf(large), few}, types.True)
	assert.Positive(t, finds)
	assert.Less(t, finds, 1000, "it looks at a few times as much as the smaller one")
}

// Shows: security/expressions-take-little-memory
func TestATextOfEmptyTextsHasABound(t *testing.T) {
	const most = 32 << 20
	env := environment(t)
	for _, expression := range []string{
		`"%s".format([text.split(",")]` + strings.Repeat(".map(a,[a,a,a,a,a,a,a,a,a,a])", 3) + `) == ""`,
		`"%s".format([text.split(",").map(a, 1e300)]) == ""`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := evaluated(t, env, expression, strings.Repeat(",", 10_000))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "would be longer than", expression)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), expression)
	}
}
