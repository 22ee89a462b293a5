package feedback

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// interruptEvery is after how many iterations of a loop an evaluation looks whether it is to end.
	interruptEvery = 100
	// maxPrograms and maxProgramText bound what is kept compiled, the latter in bytes of source: a program takes some
	// fifty kilobytes, and a spec that changes forever must not fill the memory.
	maxPrograms, maxProgramText = 64, 128 << 10
	// maxQuoted is how much of an expression stands in an error about it, in bytes.
	maxQuoted = 200
)

// celPrograms evaluates CEL expressions and keeps them compiled. Nothing is built before the first expression comes:
// the environment takes some hundred kilobytes, and most agents never see a rule. It is safe for several passes at a
// time.
type celPrograms struct {
	mu       sync.Mutex
	env      *cel.Env
	compiled map[celKey]celProgram
	text     int
}

// newCEL returns an evaluator of CEL expressions.
func newCEL() celSource { return &celPrograms{} }

// celKey is one expression; wording tells that it makes the message of a rule and not its answer.
type celKey struct {
	wording    bool
	expression string
}

// celProgram is a compiled expression, or why there is none.
type celProgram struct {
	program cel.Program
	err     error
}

// test implements celSource.
func (p *celPrograms) test(ctx context.Context, expression string, object map[string]any, budget *int64) (bool, error) {
	found, err := p.evaluate(ctx, celKey{expression: expression}, map[string]any{"object": object}, budget)
	if err != nil {
		return false, err
	}
	holds, ok := found.Value().(bool)
	if !ok {
		return false, wrongType(expression, found, "a bool")
	}
	return holds, nil
}

// word implements celSource.
func (p *celPrograms) word(ctx context.Context, expression string, object map[string]any, result bool, budget *int64,
) (string, error) {
	variables := map[string]any{"object": object, "result": result}
	found, err := p.evaluate(ctx, celKey{wording: true, expression: expression}, variables, budget)
	if err != nil {
		return "", err
	}
	text, ok := found.Value().(string)
	if !ok {
		return "", wrongType(expression, found, "a string")
	}
	return text, nil
}

// wrongType says what an expression gives instead of what it should.
func wrongType(expression string, found ref.Val, wanted string) error {
	return fmt.Errorf("the expression %q gives a value of type %s, not %s",
		message.Cut(expression, maxQuoted), found.Type().TypeName(), wanted)
}

// evaluate runs an expression and takes its cost from the budget.
func (p *celPrograms) evaluate(ctx context.Context, key celKey, variables map[string]any, budget *int64,
) (ref.Val, error) {
	if *budget <= 0 {
		return nil, errBudget
	}
	compiled := p.program(key)
	if compiled.err != nil {
		return nil, compiled.err
	}
	found, details, err := compiled.program.ContextEval(ctx, variables)
	spent := uint64(maxExpressionCost)
	if details != nil && details.ActualCost() != nil {
		spent = min(spent, *details.ActualCost())
	}
	*budget -= int64(spent)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, errBudget
	case err != nil:
		return nil, fmt.Errorf("evaluating the expression: %w", err)
	case *budget < 0:
		return nil, errBudget
	}
	return found, nil
}

// program returns the compiled expression; it is compiled once.
func (p *celPrograms) program(key celKey) celProgram {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.compiled[key]; ok {
		return known
	}
	if p.env == nil {
		env, err := newEnv()
		if err != nil {
			return celProgram{err: internalError{fmt.Errorf("building the CEL environment: %w", err)}}
		}
		p.env = env
	}
	fresh := compile(p.env, key)
	if p.compiled == nil || len(p.compiled) >= maxPrograms || p.text+len(key.expression) > maxProgramText {
		p.compiled, p.text = map[celKey]celProgram{}, 0
	}
	p.compiled[key] = fresh
	p.text += len(key.expression)
	return fresh
}

// compile makes a program of an expression.
func compile(env *cel.Env, key celKey) celProgram {
	if key.wording {
		wider, err := env.Extend(cel.Variable("result", cel.BoolType))
		if err != nil {
			return celProgram{err: internalError{fmt.Errorf("building the CEL environment: %w", err)}}
		}
		env = wider
	}
	ast, issues := env.Compile(key.expression)
	if err := issues.Err(); err != nil {
		return celProgram{err: fmt.Errorf("compiling the expression: %w", err)}
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostTracking(&costs{}), cel.CostLimit(maxExpressionCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return celProgram{err: internalError{fmt.Errorf("preparing the expression: %w", err)}}
	}
	return celProgram{program: program}
}

// newEnv builds the environment of all expressions (work contract, section 1.7).
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(append(stringFunctions(),
		cel.Variable("object", cel.DynType),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(),
		library.Format(), library.SemverLib(),
		cel.Function("hasConditions", cel.Overload("status_has_conditions",
			[]*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(hasConditions))),
	)...)
}

// hasConditions is a function of the contract: whether a value is a map with a list of conditions that is not empty.
func hasConditions(value ref.Val) ref.Val {
	status, ok := value.(traits.Mapper)
	if !ok {
		return types.False
	}
	found, ok := status.Find(types.String("conditions"))
	if !ok {
		return types.False
	}
	list, ok := found.(traits.Lister)
	return types.Bool(ok && list.Size() != types.IntZero)
}
