package expressions

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call that parses the query of a URL, or escapes its path, looks at all of it. The text is read once (url), and what
// is asked of it thousands of times costs one unit each.
func TestToAskAURLCostsWhatItTakes(t *testing.T) {
	const pairs, calls, placements = 5_000, 100, 20_000 // The latter is the limit of the cost of a Placement for one cluster.
	env := environment(t)
	ten := "[0,1,2,3,4,5,6,7,8,9]"
	for sentence, tc := range map[string]struct{ text, expression string }{
		"control: the text itself": {strings.Repeat("a", 3*pairs), `[text].all(u, TEN.all(a, TEN.all(b, !u.contains("x"))))`},
		"its query":                {"https://a/?" + strings.Repeat("a=&", pairs), `[url(text)].all(u, TEN.all(a, TEN.all(b, u.getQuery().size() == 1)))`},
		"its path":                 {"https://a/" + strings.Repeat("ü", pairs), `[url(text)].all(u, TEN.all(a, TEN.all(b, u.getEscapedPath() != "")))`},
	} {
		t.Run(sentence, func(t *testing.T) {
			ast, err := Compile(env, strings.ReplaceAll(tc.expression, "TEN", ten))
			require.NoError(t, err)
			program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(placements))
			require.NoError(t, err)
			var details *cel.EvalDetails
			allocated := testing.AllocsPerRun(1, func() { _, details, err = program.Eval(map[string]any{"text": tc.text}) })
			if err != nil {
				require.ErrorContains(t, err, "cost limit")
				return
			}
			t.Logf("%d units, %.0f allocations, for %d bytes that were looked at", *details.ActualCost(), allocated, calls*len(tc.text))
			assert.GreaterOrEqual(t, *details.ActualCost(), uint64(calls*len(tc.text)/10), "the factor of CEL for texts is 0.1")
		})
	}
}
