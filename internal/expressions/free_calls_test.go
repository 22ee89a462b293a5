package expressions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countedList counts how many of its entries are looked at.
type countedList struct {
	traits.Lister

	looks *int
}

func (l countedList) Get(index ref.Val) ref.Val { *l.looks++; return l.Lister.Get(index) }

func (l countedList) Iterator() traits.Iterator { return countedIterator{l.Lister.Iterator(), l.looks} }

type countedIterator struct {
	traits.Iterator

	looks *int
}

func (i countedIterator) Next() ref.Val { *i.looks++; return i.Iterator.Next() }

// A call that looks at the entries of a list costs something for each, also where they are empty texts, such as those of
// ",,,,".split(","). A limit of the cost is the only one that expressions of Placements have: nothing else ends them.
func TestToLookAtEmptyTextsCosts(t *testing.T) {
	const entries, placements = 2_000, 20_000 // The latter is the limit of the cost of a Placement for one cluster.
	env, err := cel.NewEnv(append(Options(), cel.Variable("list", cel.ListType(cel.StringType)))...)
	require.NoError(t, err)
	all := "[" + strings.TrimSuffix(strings.Repeat("0,", 5), ",") + "]"
	for _, call := range []string{
		`list.indexOf("x") < 0`, `list.lastIndexOf("x") < 0`, `list.isSorted()`, `list.min() == ""`, `list.max() == ""`,
		`list.join() == ""`, `list.join("") == ""`,
		`list == list`, `!("x" in list)`, // controls
	} {
		t.Run(call, func(t *testing.T) {
			looks := 0
			list := countedList{texts(make([]string, entries)...), &looks}
			expression := fmt.Sprintf("%s.all(a, %s.all(b, %s))", all, all, call)
			ast, err := Compile(env, expression)
			require.NoError(t, err)
			program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(placements))
			require.NoError(t, err)
			_, details, err := program.Eval(map[string]any{"list": list})
			if err != nil {
				require.ErrorContains(t, err, "cost limit")
				return
			}
			cost := *details.ActualCost()
			t.Logf("%d units for %d entries that were looked at", cost, looks)
			assert.GreaterOrEqual(t, int(cost), looks/10, "that is less than a tenth of a unit for each")
		})
	}
}

// The text that is sought costs something, too, where each of its characters is converted.
func TestAWantedTextThatIsConvertedCosts(t *testing.T) {
	long := types.String(strings.Repeat("x", 200_000))
	for sentence, args := range map[string][]ref.Val{
		"control: the text is long": {long, types.String("x")},
		"what is sought is long":    {types.String("x"), long},
	} {
		t.Run(sentence, func(t *testing.T) {
			result := celLastIndexOf(args) // It converts both texts to runes: four times as many bytes.
			cost := (&costs{patterns: &patterns{}}).CallCost("lastIndexOf", "string_last_index_of_string", args, result)
			require.NotNil(t, cost)
			assert.GreaterOrEqual(t, *cost, uint64(20_000))
		})
	}
}
