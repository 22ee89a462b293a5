package feedback

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/expressions"
)

// Shows: work/rules-bounded
func TestExpressionsAreCompiledOnce(t *testing.T) {
	p := &celPrograms{compiled: expressions.Programs{Limit: maxPrograms}}
	first, err := p.program(celKey{expression: "true"})
	require.NoError(t, err)
	again, err := p.program(celKey{expression: "true"})
	require.NoError(t, err)
	assert.Same(t, first, again)
	_, err = p.program(celKey{expression: "nonsense("})
	require.Error(t, err)
	_, err = p.program(celKey{message: true, expression: "result"})
	require.NoError(t, err)
}

func TestExpressionsOfSeveralPasses(t *testing.T) {
	source := newCEL()
	var passes sync.WaitGroup
	for i := range 8 {
		passes.Go(func() {
			for j := range 20 {
				budget := int64(MaxManifestCost)
				got, err := source.condition(t.Context(), "object.n == "+fmt.Sprint(j), map[string]any{"n": int64(i)}, &budget)
				assert.Equal(t, i == j && err == nil, got, "%v", err)
			}
		})
	}
	passes.Wait()
}

// The clock of these tests stands still, so that the second of an expression does not end, however busy the processor
// is.
//
// Shows: work/rules-bounded
func TestBudgets(t *testing.T) {
	var costs int64
	source := newCEL()
	t.Run("an expression is stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			budget := int64(MaxManifestCost)
			_, err := source.condition(t.Context(), costly(9), nil, &budget)
			require.ErrorIs(t, err, errBudget)
			assert.Equal(t, int64(MaxManifestCost-maxExpressionCost), budget)
		})
	})
	t.Run("so is a message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			budget := int64(MaxManifestCost)
			_, err := source.message(t.Context(), costly(9)+" ? 'a' : 'b'", map[string]any{"object": nil, "result": true}, &budget)
			require.ErrorIs(t, err, errBudget)
		})
	})
	t.Run("all of a manifest share one budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			budget := int64(MaxManifestCost)
			_, err := source.condition(t.Context(), costly(4), nil, &budget)
			require.NoError(t, err)
			costs = MaxManifestCost - budget
			assert.Positive(t, costs)
			var rules []workv1.ConditionRule
			for i := range MaxManifestCost/costs + 2 {
				rules = append(rules, withMessage(celRule(fmt.Sprintf("R%d", i), costly(4)), "said", ""))
			}
			got, _ := (&Evaluator{cel: source}).Conditions(t.Context(), object(t, configMap), rules)
			assert.Equal(t, "said", got[0].Message)
			last := got[len(got)-1]
			assert.Equal(t, RuleResult{last.Condition, "False", "ConditionRuleExpressionError", "CEL evaluation budget exceeded", false}, last)
		})
	})
	t.Run("the end of the process ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			budget := int64(MaxManifestCost)
			_, err := source.condition(ctx, costly(5), nil, &budget)
			require.Error(t, err)
			assert.NotErrorIs(t, err, errBudget)
		})
	})
}

func TestNothingLargeIsMadeOfLittle(t *testing.T) {
	big := map[string]any{"s": strings.Repeat("x", 400<<10), "l": []any{"a"}}
	// Every level has twice the items of the one within it.
	double := func(levels int, use string) string {
		text := use
		for i := range levels {
			text = fmt.Sprintf("[x%d + x%d].exists(x%d, %s)", levels-i-1, levels-i-1, levels-i, text)
		}
		return "[object.l].exists(x0, " + text + ")"
	}
	source := newCEL()
	for name, c := range map[string]struct{ expression, why string }{
		"a text of texts":           {"object.s.replace('', object.s) == ''", "longer than"},
		"a text of one list":        {"['a','b','c','d'].join(object.s) == ''", "longer than"},
		"a text of a long list":     {"object.s.split('').join(object.s) == ''", "budget exceeded"},
		"a text of many arguments":  {"'%s%s%s'.format([object.s, object.s, object.s]) == ''", "longer than"},
		"a number of many digits":   {"'%.100000000f'.format([1.5]) == ''", "no number from 0 to 100"},
		"a list that doubles":       {double(20, "x20.size() > 0"), "budget exceeded"},
		"a list within a list":      {"'%s'.format([[[[[object]]], object, object]]) == ''", "longer than"},
		"a text that is added up":   {"(object.s + object.s + object.s + object.s).size() == 1638400", ""},
		"a text that is used right": {"'%s is %d of %.2f'.format(['a', 1, 2.0]) == 'a is 1 of 2.00'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := int64(MaxManifestCost)
				holds, err := source.condition(t.Context(), c.expression, big, &budget)
				if c.why == "" {
					require.NoError(t, err)
					assert.True(t, holds)
					return
				}
				require.ErrorContains(t, err, c.why)
			})
		})
	}
}

func FuzzCEL(f *testing.F) {
	for _, seed := range []string{
		"", "true", "object.spec.replicas == 2", "result ? 'a' : 'b'", "hasConditions(object.status)", "object[0]", "object.",
		"'%s'.format([object])", "object.map(k, object[k])", "[1,2].sum()", "semver('1')", "quantity('1')", "dyn(1)/0",
		"object.?a.orValue([])", "timestamp('x')", "'a'.replace('','b')", "[object, object].join()", "object.all(k, k > 0)",
		"ip('1.2.3.4').family()", "url('x')", "'\\ud800'", "optional.none().value()", "b'a' + b'b'", "cidr('x').ip()",
	} {
		f.Add(seed)
	}
	source := newCEL()
	object := map[string]any{
		"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"replicas": int64(2), "half": 0.5, "none": nil},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "A", "status": "True"}}},
	}
	f.Fuzz(func(t *testing.T, expression string) {
		budget := int64(MaxManifestCost)
		_, err := source.condition(t.Context(), expression, object, &budget)
		_, other := source.message(t.Context(), expression, map[string]any{"object": object, "result": true}, &budget)
		for _, err := range []error{err, other} {
			if err != nil {
				assert.NotContains(t, err.Error(), "internal error", "a panic somewhere below")
			}
		}
		assert.GreaterOrEqual(t, budget, int64(MaxManifestCost-2*maxExpressionCost))
	})
}
