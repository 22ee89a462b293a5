package expressions

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// maxComputedKeys is how many maps of an expression may have keys that are no constants. The types of keys and values
	// are both in the type of a map, so each map of maps may double it: `[0].map(a, {a: a})`.
	maxComputedKeys = 4
	// maxCopied is how many parts the value has at most of which optMap or optFlatMap is asked. The macro has it twice in
	// the expression, so a chain of them doubles it each time.
	maxCopied = 128
	// maxNested is how many macros, lists, maps, optional values and types may be in each other. Each may lengthen the
	// types of those around it, and to check the types takes the fourth power of their number: two hundred took a minute
	// and five gigabytes.
	maxNested = 24
)

// Compile parses an expression and checks its types. All expressions of others must come this way: what takes time or
// memory out of proportion to its text is refused before its types are checked. The error names the position of the
// first problem; the text of all of them together is quadratic in that of the expression.
func Compile(env *cel.Env, text string) (*cel.Ast, error) {
	parsed, issues := env.Parse(text)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	if err := checkSize(parsed.NativeRep()); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	return checked, nil
}

// firstOf returns the first of the problems of an expression.
func firstOf(issues *cel.Issues) error {
	found := issues.Errors()
	if len(found) == 0 {
		return nil
	}
	return problem(found[0].Location.Line(), found[0].Location.Column(), found[0].Message)
}

// problem is an error at a position. CEL counts columns from 0.
func problem(line, column int, text string) error {
	return fmt.Errorf("line %d, column %d: %s", line, column+1, message.Cut(text, message.MaxCause))
}

// checkSize returns an error about a parsed expression whose types or values may be far larger than its text.
func checkSize(parsed *ast.AST) error {
	var refused error
	computed := 0
	refuse := func(part ast.Expr, text string) {
		if refused == nil {
			at := parsed.SourceInfo().GetStartLocation(part.ID())
			refused = problem(at.Line(), at.Column(), text)
		}
	}
	for _, part := range ast.MatchDescendants(ast.NavigateAST(parsed), isNesting) {
		if isTooDeep(part) {
			refuse(part, fmt.Sprintf("more than %d macros, lists, maps and optional values are in each other", maxNested))
			break
		}
	}
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() == ast.StructKind { // What it is made of would be copied.
			refuse(part, "messages cannot be made; use a map")
		}
		if part.Kind() == ast.MapKind && hasComputedKeys(part.AsMap()) {
			if computed++; computed > maxComputedKeys {
				refuse(part, fmt.Sprintf("more than %d maps have keys that are no constants", maxComputedKeys))
			}
		}
	}))
	return refused
}

// isNesting reports whether a part of an expression has a type with those of its parts in it: a macro, a list, a map,
// or a call of a function that makes an optional value or a type.
func isNesting(part ast.NavigableExpr) bool {
	switch part.Kind() {
	case ast.ComprehensionKind, ast.ListKind, ast.MapKind:
		return true
	case ast.CallKind:
		name := part.AsCall().FunctionName()
		return name == "of" || name == "ofNonZeroValue" || name == "type"
	default:
		return false
	}
}

// isTooDeep reports whether a part is in too many others.
func isTooDeep(part ast.NavigableExpr) bool {
	depth := 0
	for ok := true; ok; part, ok = part.Parent() {
		if isNesting(part) {
			depth++
		}
	}
	return depth > maxNested
}

// hasComputedKeys reports whether a key of a map is no constant.
func hasComputedKeys(made ast.MapExpr) bool {
	for _, entry := range made.Entries() {
		if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
			return true
		}
	}
	return false
}

// boundMacros is the option of an environment that replaces the macros which have a part of an expression twice.
func boundMacros(env *cel.Env) (*cel.Env, error) {
	var bound []cel.Macro
	for _, macro := range env.Macros() {
		if name := macro.Function(); name == "optMap" || name == "optFlatMap" {
			bound = append(bound, cel.ReceiverMacro(name, macro.ArgCount(), boundMacro(macro.Expander())))
		}
	}
	return cel.Macros(bound...)(env)
}

// boundMacro returns a macro that refuses to copy a large part of an expression.
func boundMacro(expand cel.MacroFactory) cel.MacroFactory {
	return func(factory cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		parts := 0
		ast.PreOrderVisit(target, ast.NewExprVisitor(func(ast.Expr) { parts++ }))
		if parts > maxCopied {
			return nil, factory.NewError(target.ID(),
				fmt.Sprintf("the optional value has more than %d parts here, each of which would be copied", maxCopied))
		}
		return expand(factory, target, args)
	}
}
