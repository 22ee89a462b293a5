package ignore

import (
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSupportedPartOfJQ(t *testing.T) {
	for _, expression := range []string{
		".", "..", ".a", ".a.b[]?", `."a"`, `.["a"]`, ".[0]", ".[-1]", ".[1:2]", ".[.a:.b]", ".[length - 1]", ".[.a % 2]",
		".a + 1", "1 + .a", ".a - 1", "1 - .a", ".a % 2", ".a, .b", ".a | .b", ".a // .b", ".a and .b", ".a or .b", ".a == .b",
		".a != .b", ".a < .b", ".a <= .b", ".a > .b", ".a >= .b", "-.a", "(.a)", ".a?", "try .a catch .b", "null", "true", "false", "1",
		"if .a then .b elif .c then .d else .e end", ". as $x | $x", "$x", `"a"`, "[1, 2]", "[]", `{"a": 1}`, "{a: [1, {b: null}]}", "[.a]",
		"[.]", "[.a.b]", `[."a"]`, "select(.a)", "first", "first(.a)", "nth(1)", "nth(1; .a)", "any", "any(.a)", "any(.a; .b)",
		`test("x")`, `test("x"; "i")`, "test(null)", `contains("x")`, "contains({a: [1, {b: [true, false, null]}]})",
		`contains("` + strings.Repeat("x", maxRegexp+1) + `")`, `test("` + strings.Repeat("x", maxRegexp) + `")`, "getpath([])", "limit(1; .a)",
	} {
		query, err := gojq.Parse(expression)
		require.NoError(t, err, expression)
		assert.NoError(t, checkJQ(query), expression)
	}
	require.NoError(t, checkJQ(nil))
	require.ErrorContains(t, checkJQ(&gojq.Query{Left: &gojq.Query{}}), "it is empty")
	require.ErrorContains(t, checkJQ(&gojq.Query{Right: &gojq.Query{}}), "it is empty")
}

func TestTheUnsupportedPartOfJQ(t *testing.T) {
	const constant, argument = "that is not a constant", "with an argument that is not a constant"
	for expression, says := range map[string]string{
		".a * .b": "the operator *", ".a / .b": "the operator /", ".a = .b": "the operator =", ".a += 1": "the operator +=",
		".a + .b": "the operator + without a number", ".a - .b": "the operator - without a number", ".a + .b - .c": "without a number",
		`. + "a"`: "without a number", "-1 + .": "without a number", ". + (1)": "without a number", ". + 1[0]": "without a number",
		"tojson": "tojson with 0 arguments", ".a | tojson": "tojson", "tojson | .a": "tojson", ".[tojson:]": "tojson", ".[:tojson]": "tojson",
		".a + 1 | tojson": "tojson", "(tojson)": "tojson", "-tojson": "tojson", "try tojson": "tojson", "try .a catch tojson": "tojson",
		"if tojson then .a end": "tojson", "if .a then tojson end": "tojson", "if .a then .b else tojson end": "tojson",
		"if .a then .b elif tojson then .c end": "tojson", "if .a then .b elif .c then tojson end": "tojson",
		"select(tojson)": "tojson", "first(.a; .b)": "first with 2 arguments", "first(tojson)": "tojson", "length(1)": "length with 1 arguments",
		"$ENV": "$ENV with 0 arguments", "$__loc__": "$__loc__", ". as [$a] | .": "a destructuring pattern", ". as $a | tojson": "tojson",
		". as {a: $b} | .": "a destructuring pattern", "def f: .; f": "def, import and include", "reduce .[] as $x (0; .)": "reduce",
		"foreach .[] as $x (0; .)": "foreach", "label $a | .": "label", "@json": "a format", `index("x")`: "index", `rindex("x")`: "rindex", `@json "x"`: "is not supported",
		`"\(.a)"`: constant, `."\(.a)"`: constant, `.["\(.a)"]`: "an index that", `[.a["b"]]`: constant, ".[.a]": "an index that is neither", ".[.a | .b]": "an index that",
		".[tojson + 1]": "tojson", "[.a, .b]": constant, "[1, .a]": constant, "[.a, 1]": constant, "[1 | 2]": constant, "[.[]]": constant,
		"[.a[0]]": constant, "[.a[]]": constant, "[.[0]]": constant, "[1[0]]": constant, "[.a | .b]": constant, "[..]": constant, `[."\(.a)"]`: constant,
		"{a: .b}": constant, "{a}": constant, "{(.a): 1}": constant, `{"\(.a)": 1}`: constant, "{a: 1, b: .c}": constant, "{a: 1[0]}": constant,
		"contains(.a)": argument, `contains("a"[0:1])`: argument, `contains("a" | "b")`: argument, "contains([.a])": argument,
		"contains({a: .b})": argument, `contains("\(.a)")`: argument, "test(.a)": argument, `test("x"; .a)`: argument,
		`test("` + strings.Repeat("x", maxRegexp+1) + `")`: "the regular expression has 257 bytes, more than the limit of 256",
	} {
		query, err := gojq.Parse(expression)
		require.NoError(t, err, expression)
		assert.ErrorContains(t, checkJQ(query), says, expression)
	}
}
