package expressions

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// limited is the library that replaces the functions of CEL and Kubernetes that take any amount of memory or time for a
// short text: regular expressions and quantities.
type limited struct{ patterns *patterns }

// CompileOptions implements cel.Library. The functions are declared elsewhere.
func (limited) CompileOptions() []cel.EnvOption { return nil }

// ProgramOptions implements cel.Library.
func (l limited) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CustomDecorator(l.replace), cel.CostTracking(&costs{patterns: l.patterns})}
}

// replace returns a part of a program, with our function if it calls one of those. A constant regular expression that
// is refused is an error of the program.
func (l limited) replace(part interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := part.(interpreter.InterpretableCall)
	if !ok {
		return part, nil
	}
	var body func(...ref.Val) ref.Val
	switch call.Function() {
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
type unknown struct{ interpreter.Interpretable }
