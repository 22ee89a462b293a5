package expressions

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts is a list of CEL.
func texts(items ...string) traits.Lister {
	return types.NewStringList(types.DefaultTypeAdapter, items)
}

func TestTheSizeOfValues(t *testing.T) {
	nested := func(depth int) ref.Val {
		value := types.DefaultTypeAdapter.NativeToValue("x")
		for range depth {
			value = types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{value})
		}
		return value
	}
	value := types.DefaultTypeAdapter.NativeToValue
	for name, c := range map[string]struct {
		value ref.Val
		want  int
	}{
		"a string":            {types.String("abc"), 3},
		"a string in bytes":   {types.String("é"), 2},
		"bytes":               {types.Bytes("abcd"), 4},
		"a number":            {types.Int(7), scalar},
		"null":                {types.NullValue, scalar},
		"an empty list":       {texts(), scalar},
		"a list":              {texts("a", "bc"), scalar + 2*entry + 3},
		"one of empty texts":  {texts("", "", ""), scalar + 3*entry},
		"a map":               {value(map[string]any{"key": "value", "k": int64(1)}), scalar + 2*entry + 3 + 5 + 1 + scalar},
		"lists in lists":      {nested(100), 100*(scalar+entry) + 1},
		"what may be missing": {types.OptionalOf(texts("a")), entry + scalar + entry + 1},
		"what is missing":     {types.OptionalNone, scalar},
		"what knows its size": {&madeList{texts("a"), 7}, 7},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, sizeUpTo(c.value, maxText)) })
	}
	half := strings.Repeat("x", maxText/2)
	assert.Equal(t, scalar+2*(entry+len(half)), sizeUpTo(texts(half, half, half, half, half), maxText), "it stops above the limit")
}

func TestResultsOfFunctionsAreLimited(t *testing.T) {
	long := func(less int) types.String { return types.String(strings.Repeat("x", maxText-less)) }
	for name, c := range map[string]struct {
		result  ref.Val
		tooLong bool
	}{
		"replace up to the limit":            {celReplace([]ref.Val{long(2) + "y", types.String("y"), types.String("zz")}), false},
		"replace beyond the limit":           {celReplace([]ref.Val{long(2) + "y", types.String("y"), types.String("zzz")}), true},
		"replace of some up to the limit":    {celReplace([]ref.Val{long(4) + "yyy", types.String("y"), types.String("zz"), types.Int(1)}), false},
		"replace of some beyond the limit":   {celReplace([]ref.Val{long(4) + "yyy", types.String("y"), types.String("zz"), types.Int(2)}), true},
		"replace of none":                    {celReplace([]ref.Val{long(0), types.String("x"), types.String("zz"), types.Int(0)}), false},
		"replace of all by a negative count": {celReplace([]ref.Val{long(1) + "y", types.String("y"), types.String("zz"), types.Int(-1)}), true},
		"join up to the limit":               {celJoin([]ref.Val{texts(string(long(1)), "a")}), false},
		"join beyond the limit":              {celJoin([]ref.Val{texts(string(long(0)), "a")}), true},
		"join with a separator":              {celJoin([]ref.Val{texts(string(long(0))), types.String("-")}), true},
		"format up to the limit":             {celFormat([]ref.Val{types.String("%s"), texts(string(long(0)))}), false},
		"format beyond the limit":            {celFormat([]ref.Val{types.String("%s"), texts(string(long(0)) + "x")}), true},
		"format of several":                  {celFormat([]ref.Val{types.String("%s%s"), texts(string(long(1)), "xx")}), true},
		"format of several that fit":         {celFormat([]ref.Val{types.String("%s%s"), texts(string(long(1)), "x")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.tooLong {
				err, failed := c.result.(*types.Err)
				require.True(t, failed, "%v", c.result)
				assert.Equal(t, "the text would be longer than 1048576 bytes", err.Error())
				return
			}
			text, ok := c.result.Value().(string)
			require.True(t, ok, "%v", c.result)
			assert.LessOrEqual(t, len(text), maxText)
		})
	}
}

func TestAListThatIsTooLongCostsMoreThanAnyLimit(t *testing.T) {
	estimate := func(items int) uint64 {
		cost := (&costs{patterns: &patterns{}}).CallCost("split", "string_split_string", []ref.Val{types.String("a"), types.String(",")},
			types.NewStringList(types.DefaultTypeAdapter, make([]string, items)))
		require.NotNil(t, cost)
		return *cost
	}
	assert.LessOrEqual(t, estimate(maxItems), uint64(1_000_000))
	assert.Greater(t, estimate(maxItems+1), uint64(1<<60))
}

// Shows: work/rule-cost
func TestWhatACallLooksAtCosts(t *testing.T) {
	deep := types.DefaultTypeAdapter.NativeToValue(map[string]any{
		"data": map[string]any{"a": strings.Repeat("a", 100_000), "b": strings.Repeat("b", 100_000)},
	})
	few := types.DefaultTypeAdapter.NativeToValue(map[string]any{"data": "a"})
	list := types.DefaultTypeAdapter.NativeToValue([]any{deep})
	text := types.String(strings.Repeat("a", 200_000))
	for sentence, tc := range map[string]struct {
		function, overload string
		args               []ref.Val
		least, most        uint64
	}{
		"maps that are compared":                {"_==_", "equals", []ref.Val{deep, deep}, 20_000, 30_000},
		"and those that differ":                 {"_!=_", "not_equals", []ref.Val{deep, deep}, 20_000, 30_000},
		"lists of them":                         {"_==_", "equals", []ref.Val{list, list}, 20_000, 30_000},
		"a map that is sought in a list":        {"@in", "in_list", []ref.Val{deep, list}, 20_000, 30_000},
		"a large one with a small one":          {"_==_", "equals", []ref.Val{deep, few}, 0, 100},
		"numbers":                               {"_==_", "equals", []ref.Val{types.Int(1), types.Int(1)}, 0, 1},
		"a number that is sought in a list":     {"@in", "in_list", []ref.Val{types.Int(1), list}, 0, 10},
		"one character of a text":               {"charAt", "string_char_at_int", []ref.Val{text, types.Int(1)}, 20_000, 30_000},
		"a text that is turned":                 {"reverse", "string_reverse", []ref.Val{text}, 20_000, 300_000},
		"maps that may be missing":              {"_==_", "equals", []ref.Val{types.OptionalOf(deep), types.OptionalOf(deep)}, 20_000, 30_000},
		"one that is sought in a list":          {"@in", "in_list", []ref.Val{types.OptionalOf(deep), list}, 20_000, 30_000},
		"two texts of which the first is short": {"_+_", "", []ref.Val{types.String("a"), text}, 20_000, 30_000},
		"bytes that are added":                  {"_+_", "", []ref.Val{types.Bytes("a"), types.Bytes(text)}, 20_000, 30_000},
		"lists that are added":                  {"_+_", "add_list", []ref.Val{list, list}, 40_000, 60_000},
		"a map that becomes a text":             {"format", "string_format", []ref.Val{types.String("%s"), list}, 20_000, 30_000},
		"a list that is made of them":           {makes, "list", []ref.Val{deep}, 20_000, 30_000},
		"a list of what knows its size":         {makes, "list", []ref.Val{made(list)}, 10, 10},
		"a map of little":                       {makes, "map", []ref.Val{types.String("a"), types.Int(1)}, 30, 30},
		"the beginning of a text is all that":   {"startsWith", "starts_with_string", []ref.Val{text, types.String("a")}, 0, 10},
	} {
		t.Run(sentence, func(t *testing.T) {
			cost := (&costs{patterns: &patterns{}}).CallCost(tc.function, tc.overload, tc.args, types.True)
			if tc.least == 0 && cost == nil {
				return // The runtime counts one.
			}
			require.NotNil(t, cost)
			assert.GreaterOrEqual(t, *cost, tc.least)
			assert.LessOrEqual(t, *cost, tc.most)
		})
	}
}
