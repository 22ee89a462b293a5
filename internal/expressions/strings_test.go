package expressions

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStringFunctionsAreThoseOfCEL compares our functions for strings with the ones that come with CEL.
func TestStringFunctionsAreThoseOfCEL(t *testing.T) {
	theirs, err := cel.NewEnv(ext.Strings(), cel.Variable("object", cel.DynType))
	require.NoError(t, err)
	ours, err := cel.NewEnv(append(Options(), cel.Variable("object", cel.DynType))...)
	require.NoError(t, err)
	texts := []string{"''", "'a'", "'héllo wörld'", "'aXbXXc'", "'  x\\t\\\\\"\\n'", "'ABC abc ÄÖ'", "'\\u00a0x\\u3000'"}
	var expressions []string
	for _, s := range texts {
		expressions = append(expressions, s+".lowerAscii()", s+".upperAscii()", s+".trim()", s+".reverse()",
			"strings.quote("+s+")", s+".split('')", s+".split('X')", s+".split('X', 0)", s+".split('X', 2)", s+".split('X', -1)")
		for n := -1; n < 12; n++ {
			expressions = append(expressions, fmt.Sprintf("%s.charAt(%d)", s, n), fmt.Sprintf("%s.substring(%d)", s, n),
				fmt.Sprintf("%s.substring(1, %d)", s, n), fmt.Sprintf("%s.substring(%d, 3)", s, n),
				fmt.Sprintf("%s.replace('X', 'yy', %d)", s, n))
			for _, wanted := range []string{"''", "'X'", "'l'", "'wör'", "'XX'"} {
				expressions = append(expressions,
					fmt.Sprintf("%s.indexOf(%s, %d)", s, wanted, n), fmt.Sprintf("%s.lastIndexOf(%s, %d)", s, wanted, n))
			}
		}
		for _, wanted := range []string{"''", "'X'", "'l'", "'ö'"} {
			expressions = append(expressions, s+".indexOf("+wanted+")", s+".lastIndexOf("+wanted+")", s+".replace("+wanted+", 'é')")
		}
	}
	for _, list := range []string{"[]", "['a']", "['a', 'b', '']", "['é', 'x']"} {
		expressions = append(expressions, list+".join()", list+".join(', ')")
	}
	values := []string{
		"'a'", "b'a'", "1", "-7", "42u", "1.5", "1e300", "0.1", "true", "null", "[1, 'a', [2.0]]", "{'b': 1, 'a': ['x']}", "{1: 2}",
		"duration('90m1.5s')", "timestamp('2024-01-02T03:04:05.6+02:00')", "type(1)", "double('NaN')", "double('-Infinity')", "object",
	}
	for _, verb := range []string{"%s", "%d", "%f", "%.3f", "%.0f", "%e", "%.2e", "%b", "%o", "%x", "%X", "%%", "%q", "%", "%.f"} {
		for _, value := range values {
			expressions = append(expressions, fmt.Sprintf("dyn('<%s>').format(dyn([%s]))", verb, value))
		}
	}
	expressions = append(expressions, "'%s %s'.format(dyn(['a']))", "'%d%%, %s'.format([1, 'x'])")
	evaluate := func(env *cel.Env, expression string) (any, error) {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			return nil, issues.Err()
		}
		program, err := env.Program(ast)
		if err != nil {
			return nil, err
		}
		found, _, err := program.Eval(map[string]any{"object": map[string]any{"k": []any{"v", int64(1)}}})
		if err != nil {
			return nil, err
		}
		if list, ok := found.(traits.Lister); ok {
			return list.ConvertToNative(reflect.TypeFor[[]string]())
		}
		return found.Value(), nil
	}
	for _, expression := range expressions {
		want, wrong := evaluate(theirs, expression)
		got, err := evaluate(ours, expression)
		if text, ok := want.(string); ok && strings.Contains(text, "%!") {
			continue // they cannot write a whole number with %f or %e
		}
		assert.Equal(t, wrong == nil, err == nil, "%s: %v, but ours: %v", expression, wrong, err)
		assert.Equal(t, want, got, expression)
	}
}
