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

	"github.com/spokelet/spokelet/internal/expressions"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// interruptEvery is the number of iterations of a loop after which an evaluation checks its context.
	interruptEvery = 100
	// maxPrograms is how many bytes the compiled expressions take.
	maxPrograms = 6 << 20
	// maxQuoted is how much of an expression an error quotes, in bytes.
	maxQuoted = 200
)

// celPrograms evaluates CEL expressions and caches them compiled. The first expression creates the environment, which
// takes some hundred kilobytes: most agents never see a rule. Several passes may use it at a time.
type celPrograms struct {
	mu       sync.Mutex
	env      *cel.Env
	compiled expressions.Programs
}

// newCEL returns an evaluator of CEL expressions.
func newCEL() celEvaluator {
	return &celPrograms{compiled: expressions.Programs{Limit: maxPrograms}}
}

// celKey is one expression. A message expression has the variable result besides object.
type celKey struct {
	message    bool
	expression string
}

// condition implements celEvaluator.
func (p *celPrograms) condition(ctx context.Context, expression string, object map[string]any, budget *int64,
) (bool, error) {
	found, err := p.evaluate(ctx, celKey{expression: expression}, map[string]any{"object": object}, budget)
	if err != nil {
		return false, err
	}
	met, ok := found.(types.Bool)
	if !ok {
		return false, wrongType(expression, found, "a bool")
	}
	return bool(met), nil
}

// message implements celEvaluator.
func (p *celPrograms) message(ctx context.Context, expression string, variables map[string]any, budget *int64,
) (string, error) {
	found, err := p.evaluate(ctx, celKey{message: true, expression: expression}, variables, budget)
	if err != nil {
		return "", err
	}
	text, ok := found.(types.String)
	if !ok {
		return "", wrongType(expression, found, "a string")
	}
	return string(text), nil
}

// wrongType is the error about an expression that returns a value of another type than it should.
func wrongType(expression string, found ref.Val, wanted string) error {
	return fmt.Errorf("the expression %q gives a value of type %s, not %s",
		message.Cut(expression, maxQuoted), found.Type().TypeName(), wanted)
}

// evaluate runs an expression and subtracts its cost from the budget.
func (p *celPrograms) evaluate(ctx context.Context, key celKey, variables map[string]any, budget *int64,
) (ref.Val, error) {
	if *budget <= 0 {
		return nil, errBudget
	}
	if err := ctx.Err(); err != nil {
		return nil, internalError{fmt.Errorf("evaluating an expression: %w", err)} // to compile one takes milliseconds
	}
	program, err := p.program(key)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, maxExpressionTime)
	defer cancel()
	found, details, err := program.ContextEval(limited, variables)
	spent := uint64(maxExpressionCost)
	if details != nil && details.ActualCost() != nil {
		spent = min(spent, *details.ActualCost())
	}
	*budget -= int64(spent)
	if limited.Err() != nil && ctx.Err() == nil {
		*budget = 0 // What is left of the manifest waits no longer either.
		return nil, errTime
	}
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

// program returns the compiled expression from the cache, or compiles it.
func (p *celPrograms) program(key celKey) (cel.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock() // also while one is compiled, which takes memory
	if p.env == nil {
		env, err := newEnv()
		if err != nil {
			return nil, internalError{fmt.Errorf("building the CEL environment: %w", err)}
		}
		p.env = env
	}
	return p.compiled.Of(fmt.Sprint(key.message, " ", key.expression), func() (cel.Program, error) {
		return compile(p.env, key)
	})
}

// compile compiles an expression.
func compile(env *cel.Env, key celKey) (cel.Program, error) {
	if key.message {
		extended, err := env.Extend(cel.Variable("result", cel.BoolType))
		if err != nil {
			return nil, internalError{fmt.Errorf("building the CEL environment: %w", err)}
		}
		env = extended
	}
	ast, err := expressions.Compile(env, key.expression)
	if err != nil {
		return nil, fmt.Errorf("compiling the expression: %w", err)
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(maxExpressionCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("preparing the expression: %w", err)
	}
	return program, nil
}

// newEnv returns the environment of all expressions (docs/reference/work.md, "Condition rules").
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(append(expressions.Options(),
		cel.Variable("object", cel.DynType),
		cel.Function("hasConditions", cel.Overload("status_has_conditions",
			[]*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(hasConditions))),
	)...)
}

// hasConditions reports whether a value is a map with a list of conditions that is not empty. It is a function of CEL
// that OCM adds.
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
