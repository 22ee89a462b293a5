package expressions

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shows: security/expressions-take-little-memory
func TestToCompileAnExpressionTakesLittleMemory(t *testing.T) {
	const most = 48 << 20
	env := environment(t)
	_, err := Compile(env, "true")
	require.NoError(t, err)
	for sentence, tc := range map[string]struct{ expression, refused string }{
		"maps of maps by computed keys":          {"[0]" + strings.Repeat(".map(a,{a:a})", 13) + ".size() == 1", "line 1, column 63: more than 4 maps have keys"},
		"many of them":                           {"[0]" + strings.Repeat(".map(a,{a:a})", 20) + ".size() == 1", "more than 4 maps have keys"},
		"of several keys":                        {"[0]" + strings.Repeat(".map(a,{1:a,a:1})", 13) + ".size() == 1", "more than 4 maps have keys"},
		"by lists":                               {"[0]" + strings.Repeat(".map(a,{[a]:[a]})", 13) + ".size() == 1", "more than 4 maps have keys"},
		"a few of them":                          {"[0]" + strings.Repeat(".map(a,{a:a})", 4) + strings.Repeat(".map(a,[a])", 18) + ".size() == 1", ""},
		"maps of maps by constant keys":          {"[0]" + strings.Repeat(".map(a,{1:a,2:a})", 22) + ".size() == 1", ""},
		"lists of lists":                         {"[0]" + strings.Repeat(".map(a,[a,a])", 22) + ".size() == 1", ""},
		"optional values that are copied":        {"optional.of(1)" + strings.Repeat(".optMap(a,a)", 30) + ".hasValue()", "more than 128 parts"},
		"more of them":                           {"optional.of(1)" + strings.Repeat(".optFlatMap(a,optional.of(a))", 30) + ".hasValue()", "more than 128 parts"},
		"a few optional values":                  {"optional.of(1)" + strings.Repeat(".optMap(a,a)", 3) + ".hasValue()", ""},
		"many macros on each other":              {"[0]" + strings.Repeat(".map(a,[a])", 100) + ".size() == 1", "more than 24 macros, lists, maps and optional values are in each other"},
		"many lists in each other":               {strings.Repeat("[", 100) + strings.Repeat("]", 100) + ".size() == 1", "more than 24 macros, lists, maps and optional values"},
		"a message":                              {"google.protobuf.ListValue{values: []} == []", "messages cannot be made; use a map"},
		"what is wrong, and where":               {"true &&\n nothing", "line 2, column 2: undeclared reference to 'nothing'"},
		"what is no expression, and where it is": {"true && ", "line 1, column 9: Syntax error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Compile(env, tc.expression)
			runtime.ReadMemStats(&after)
			if tc.refused == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.refused)
			}
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
		})
	}
}
