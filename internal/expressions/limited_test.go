package expressions

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// evaluated evaluates an expression with the variable text, and returns its value and cost.
func evaluated(t *testing.T, env *cel.Env, expression, text string) (any, uint64, error) {
	t.Helper()
	ast, err := Compile(env, expression)
	if err != nil {
		return nil, 0, err
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
	if err != nil {
		return nil, 0, err
	}
	found, details, err := program.Eval(map[string]any{"text": text})
	if err != nil {
		return nil, *details.ActualCost(), err
	}
	return found.Value(), *details.ActualCost(), nil
}

func environment(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(append(Options(), cel.Variable("text", cel.StringType))...)
	require.NoError(t, err)
	return env
}

func TestRegularExpressionsAndQuantitiesMeanWhatTheyDidWithoutLimits(t *testing.T) {
	env := environment(t)
	for expression, want := range map[string]any{
		`text.matches("^prod-[a-z0-9]{1,63}$")`:                                                 true,
		`matches(text, "dev")`:                                                                  false,
		`dyn(text).matches("p" + "rod")`:                                                        true,
		`text.find("[a-z]+") + text.find("[A-Z]")`:                                              "prod",
		`text.findAll("[a-z]").size() == 6`:                                                     true,
		`text.findAll("[a-z]", 2) == ["p", "r"]`:                                                true,
		`text.findAll("[a-z]", 0).size()`:                                                       int64(0),
		`"eu-ü".matches("^[\\p{L}\\p{N}-]{1,63}$")`:                                             true,
		`["a.b", "a"].filter(x, x.matches("^([a-z]([-a-z0-9]{0,61}[a-z])?\\.?){1,5}$")).size()`: int64(2),
		`quantity("1500m").isGreaterThan(quantity("1"))`:                                        true,
		`quantity("1Ei").compareTo(quantity("1E"))`:                                             int64(1),
		`sign(quantity("1e-30")) + sign(quantity("1e+30"))`:                                     int64(2),
		`isQuantity("20Mi") && isQuantity("1e9") && !isQuantity("20Mx")`:                        true,
		`isQuantity("1e31") || isQuantity("1e-31") || isQuantity("1E-99999999999999999999")`:    false,
	} {
		got, _, err := evaluated(t, env, expression, "prod-ab")
		require.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
}

// Shows: security/expressions-take-little-memory
func TestFewBytesOfAnExpressionTakeLittleMemory(t *testing.T) {
	const most = 16 << 20
	env, long := environment(t), strings.Repeat("x", 1<<20)
	large := strings.Repeat("a", 500)
	for expression, want := range map[string]string{
		fmt.Sprintf(`text.matches("(%s){1000}")`, large):                          "with its repetitions has 502000 instructions, more than the limit of 5000",
		fmt.Sprintf(`matches(text, "(%s){1000}")`, large):                         "instructions",
		fmt.Sprintf(`text.matches("(" + "%s" + "){1000}")`, large):                "instructions",
		fmt.Sprintf(`dyn(text).matches(dyn("(%s){1000}"))`, large):                "instructions",
		fmt.Sprintf(`text.find("(%s){1000}") == ""`, large):                       "instructions",
		fmt.Sprintf(`text.findAll("(%s){1000}").size() == 0`, large):              "instructions",
		fmt.Sprintf(`text.findAll("(" + "%s" + "){1000}", 1).size() == 0`, large): "instructions",
		`text.matches("` + strings.Repeat(`\\pL`, 300) + `")`:                     "instructions",
		`text.matches("` + strings.Repeat("a", maxPattern+1) + `")`:               "has 1025 bytes, more than the limit of 1024",
		`text.matches("(" + text)`:                                                "has 1048577 bytes",
		`text.matches("(")`:                                                       "missing closing )",
		`text.matches("(a|b|c){900}")`:                                            "takes too long for a text of 1048576 characters",
		`sign(quantity("1e-2147483640")) == 1`:                                    "is not from -30 to 30",
		`quantity("1e2147483640").isLessThan(quantity("1"))`:                      "is not from -30 to 30",
		`sign(quantity("1e-21474" + "83640")) == 1`:                               "is not from -30 to 30",
		`sign(quantity("1` + strings.Repeat("0", maxQuantity) + `")) == 1`:        "has 41 bytes, more than the limit of 40",
		"true" + strings.Repeat("||true", MaxLength/6+1):                          "4096",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := evaluated(t, env, expression, long)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want, expression[:min(len(expression), 60)])
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), expression[:min(len(expression), 60)])
	}
}

func TestTheCostOfARegularExpressionIsThatOfItsSize(t *testing.T) {
	env := environment(t)
	cost := func(expression string) uint64 {
		_, cost, err := evaluated(t, env, expression, "prod")
		require.NoError(t, err)
		return cost
	}
	assert.Less(t, cost(`text.matches("^(prod|dev)$")`), uint64(60))
	assert.Greater(t, cost(`text.matches("(a|b|c){900}")`), uint64(3000))
	_, refused, err := evaluated(t, env, `[1, 2, 3].exists(x, text.matches(text + "){1000}"))`, "(((((")
	require.Error(t, err)
	assert.Greater(t, refused, uint64(3*maxPatternSize), "a refusal has its cost, too")
}

func TestTheSizeOfARegularExpressionIsItsTrueNumberOfInstructions(t *testing.T) {
	const frame = 3 // the instructions at begin and end of all
	for _, text := range []string{
		"", "abc", "a{3}", "a{2,}", "(a{10}){10}", "a|bc", "ab|ac|ad", "(?i)ab", ".*", "(a?){5}", "(ab{2,5}c|d+){3,7}", "x{0,1000}",
		"^prod-[a-z]+-[0-9]{1,3}$", "((a|b|c){30}d?){30}", "[a-z]([-a-z0-9]{0,61}[a-z0-9])?", "(a*)*", "(|a){200}", `\bx\B{10}`,
	} {
		size, err := patternSize(text, maxPatternSize)
		require.NoError(t, err)
		parsed, err := syntax.Parse(text, syntax.Perl)
		require.NoError(t, err)
		compiled, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err)
		assert.LessOrEqual(t, len(compiled.Inst), size+frame, text)
		assert.LessOrEqual(t, size, 2*len(compiled.Inst), text)
	}
	require.NoError(t, CheckPattern("a{500}", 500))
	require.ErrorContains(t, CheckPattern("a{501}", 500), "has 501 instructions, more than the limit of 500")
}

func TestOnlySomeRegularExpressionsAreKept(t *testing.T) {
	p := &patterns{}
	first := p.of("a")
	assert.Same(t, first.compiled, p.of("a").compiled)
	assert.IsType(t, &regexp.Regexp{}, first.compiled)
	for i := range 500 {
		p.of(fmt.Sprintf("(abc){%d}", i))
		assert.LessOrEqual(t, p.kept.Size(), maxPatternsKept)
	}
}

func TestOnlySomeProgramsAreKept(t *testing.T) {
	env, compiled := environment(t), 0
	p := &Programs{Limit: 500 << 10}
	of := func(text string) error {
		_, err := p.Of(text, func() (cel.Program, error) {
			compiled++
			ast, issues := env.Compile(text)
			if issues.Err() != nil {
				return nil, issues.Err()
			}
			return env.Program(ast)
		})
		return err
	}
	require.NoError(t, of("true"))
	require.NoError(t, of("true"))
	require.Error(t, of("nonsense("))
	require.Error(t, of("nonsense("), "what does not compile is remembered, too")
	assert.Equal(t, 2, compiled)
	for i := range 30 {
		require.NoError(t, of(fmt.Sprint(i)))
		assert.LessOrEqual(t, p.kept.Size(), p.Limit)
	}
	require.NoError(t, of("true"))
	assert.Equal(t, 33, compiled)
}
