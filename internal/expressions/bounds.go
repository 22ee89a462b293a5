package expressions

import (
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// maxText and maxItems are the longest string, in bytes, and the longest list that an expression may return. CEL knows
	// the cost of a call only after the call, and one call can turn a few bytes into a terabyte, so a limit of the cost is
	// not enough.
	maxText, maxItems = 1 << 20, 100_000
	// maxDepth is how deep a value is nested at most that becomes a string.
	maxDepth = 64
	// zone is how many bytes the file of a time zone has, about.
	zone = 2_000
)

// costs estimates the cost of a call as Kubernetes does, and that of a regular expression by its true size. A list that
// is too long costs more than any limit.
type costs struct {
	library.CostEstimator

	patterns *patterns
}

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	estimated := c.estimate(function, overload, args, result)
	looks := uint64(float64(looksAt(function, args)) * common.StringTraversalCostFactor)
	if looks > 0 && (estimated == nil || *estimated < looks) {
		return &looks
	}
	return estimated // Without an estimate, CEL has its own, which looks at no more than that.
}

// looksAt returns how many bytes a call looks at, at most. Kubernetes takes that a comparison looks at the entries of a
// list and not into them, that empty texts and finding one character take no time, and that a URL is read only once.
func looksAt(function string, args []ref.Val) int {
	if len(args) == 0 {
		return 0
	}
	switch function {
	case operators.Equals, operators.NotEquals:
		if isNested(args[0]) && isNested(args[1]) {
			return smaller(args[0], args[1])
		}
		return min(bytesOf(args[0]), bytesOf(args[1]))
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return min(bytesOf(args[0]), bytesOf(args[1]))
	case operators.In:
		if isNested(args[0]) {
			return sizeUpTo(args[1], maxMade)
		}
		return bytesOf(args[0])
	case operators.Add:
		return bytesOf(args[0]) + bytesOf(args[1]) + uncounted(args)
	case "format":
		return bytesOf(args[0]) + sizeUpTo(args[1], maxText)
	case "startsWith", "endsWith":
		return 0
	}
	total := 0
	for _, arg := range args {
		total += bytesOf(arg)
	}
	switch {
	case function == "isSorted", function == "sum", function == "max", function == "min", function == "join",
		function == "indexOf", function == "lastIndexOf":
		total += sizeUpTo(args[0], maxMade)
	case strings.HasPrefix(function, "get") && len(args) > 1: // It reads the file of a time zone.
		total += zone
	}
	return total
}

// bytesOf returns the length of a text, or of what was read from one, in bytes; 0 for all others.
func bytesOf(value ref.Val) int {
	switch value := value.(type) {
	case types.String:
		return len(value)
	case types.Bytes:
		return len(value)
	case apiservercel.URL:
		return len(value.String())
	case apiservercel.Semver:
		return len(value.String())
	}
	return 0
}

// estimate is the cost of a call as Kubernetes estimates it, but for regular expressions and long lists.
func (c *costs) estimate(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if list, ok := result.(traits.Lister); ok {
		if size, ok := list.Size().(types.Int); !ok || size > maxItems {
			tooMuch := uint64(math.MaxUint64 / 2)
			return &tooMuch
		}
	}
	switch function {
	case makes:
		cost := costOfMaking(overload, args)
		return &cost
	case "matches", "find", "findAll":
		cost := c.patterns.of(textAt(args, 1)).cost(len(textAt(args, 0)))
		return &cost
	}
	return c.CostEstimator.CallCost(function, overload, args, result)
}

// celTooLong is the error of a function whose result would be too long.
func celTooLong() ref.Val { return types.NewErr("the text would be longer than %d bytes", maxText) }

// limited is the library that replaces the functions of CEL and Kubernetes that take any amount of memory or time for a
// short text: regular expressions, quantities, and what makes lists and maps.
type limited struct{ patterns *patterns }

// CompileOptions implements cel.Library. The functions are declared elsewhere.
func (limited) CompileOptions() []cel.EnvOption { return []cel.EnvOption{boundMacros} }

// ProgramOptions implements cel.Library.
func (l limited) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CustomDecorator(l.replace), cel.CostTracking(&costs{patterns: l.patterns})}
}

// replace returns a part of a program, with our function if it calls one of those. A constant regular expression that
// is refused is an error of the program.
func (l limited) replace(part interpreter.Interpretable) (interpreter.Interpretable, error) {
	if made, ok := part.(interpreter.InterpretableConstructor); ok {
		return newConstructor(made), nil
	}
	call, ok := part.(interpreter.InterpretableCall)
	if !ok {
		return part, nil
	}
	var body func(...ref.Val) ref.Val
	switch call.Function() {
	case operators.Add:
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), celAdd), nil
	case "quantity":
		body = celQuantity
	case "isQuantity":
		body = celIsQuantity
	case "matches":
		body = l.patterns.matches
	case "find":
		body = l.patterns.find
	case "findAll":
		body = l.patterns.findAll
	default:
		return part, nil
	}
	args := slices.Clone(call.Args())
	if len(args) > 1 {
		if constant, ok := args[1].(interpreter.InterpretableConst); ok {
			if text, ok := constant.Value().Value().(string); ok && l.patterns.of(text).err != nil {
				return nil, l.patterns.of(text).err
			}
		}
		args[1] = unknown{args[1]}
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), args, body), nil
}

// unknown hides that an argument is a constant. CEL would compile a constant regular expression without a limit.
type unknown struct{ interpreter.InterpretableV2 }
