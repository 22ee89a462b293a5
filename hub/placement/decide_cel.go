package placement

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spokelet/spokelet/internal/expressions"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// variable is the name under which an expression finds the cluster.
	variable = "managedCluster"

	// maxClusterCost limits what the expressions of a Placement may cost for one cluster, in units of CEL, and
	// maxFleetCost what they may cost for all clusters in one pass. To look through fifty claims costs some 500 units; a
	// million units take a sixth of a second.
	maxClusterCost, maxFleetCost = 20_000, 10_000_000

	// maxEventCost limits what the expressions of all Placements may cost when a cluster changes, because all other
	// changes wait for that: some thirty milliseconds. The Placements beyond are decided again without that question.
	maxEventCost = 200_000

	// maxExpressions and maxText limit the expressions of a Placement, the latter in bytes: a compiled expression takes
	// some fifty kilobytes.
	maxExpressions, maxText = 32, 16 << 10

	// maxPrograms is how many bytes the compiled expressions of all Placements take.
	maxPrograms = 16 << 20

	// maxQuoted is how many bytes of an expression a message quotes.
	maxQuoted = 200
)

// held returns the rules with expressions that are compiled once: each is asked about each cluster, and the programs
// of all Placements may be more than are kept.
func (r *rules) held() *rules {
	held := *r
	held.predicates = slices.Clone(r.predicates)
	for i := range held.predicates {
		s := &held.predicates[i]
		s.expressions = slices.Clone(s.expressions)
		for j := range s.expressions {
			s.expressions[j].program = sync.OnceValues(s.expressions[j].program)
		}
	}
	return &held
}

// newEnvironment returns the environment of expressions (docs/reference/hub.md, "Placements").
func newEnvironment() (*cel.Env, error) {
	return cel.NewEnv(append(expressions.Options(),
		cel.Variable(variable, cel.MapType(cel.StringType, cel.DynType)))...)
}

// compileIn compiles an expression. The error names the position in the expression and the cause.
func compileIn(env *cel.Env, text string) (cel.Program, error) {
	wrong := func(format string, args ...any) (cel.Program, error) {
		return nil, fmt.Errorf("the expression %q %s", message.Cut(text, maxQuoted), fmt.Sprintf(format, args...))
	}
	ast, err := expressions.Compile(env, text)
	if err != nil {
		return wrong("does not compile: %s", err)
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return wrong("gives a value of type %s, not bool", kind)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxClusterCost))
	if err != nil {
		return wrong("cannot be prepared: %s", message.Cut(err.Error(), message.MaxCause))
	}
	return program, nil
}

// matches reports whether the expression is true for a cluster, and adds what that costs.
func (e expression) matches(s *subject) (bool, error) {
	if s.left != nil && (*s.left == 0 || !e.ready()) {
		s.unasked = true
		return false, nil
	}
	if s.object == nil {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.cluster)
		if err != nil {
			return false, fmt.Errorf("%s: reading the cluster: %w", e.path, err)
		}
		s.object = object
	}
	program, err := e.program()
	if err != nil {
		return false, fmt.Errorf("%s: %w", e.path, err)
	}
	found, details, err := program.Eval(map[string]any{variable: s.object})
	if details != nil && details.ActualCost() != nil {
		s.cost += *details.ActualCost()
		if s.left != nil {
			*s.left -= min(*s.left, *details.ActualCost())
		}
	}
	var stopped interpreter.EvalCancelledError
	switch {
	case errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded, s.cost > maxClusterCost:
		return false, e.tooExpensive()
	case err != nil:
		return false, fmt.Errorf("%s: %s", e.path, message.Cut(err.Error(), message.MaxCause))
	}
	if _, ok := found.(types.Bool); !ok {
		return false, fmt.Errorf("%s: it gives a value of type %s, not bool", e.path, found.Type().TypeName())
	}
	return found == types.True, nil
}

// tooExpensive returns the error of an expression that brings the cost for a cluster above the limit.
func (e expression) tooExpensive() error {
	return &costError{fmt.Sprintf("%s: with the expression %q, the expressions cost more than %d units of CEL for one "+
		"cluster; simplify them, or select by labels and claims first",
		e.path, message.Cut(e.text, maxQuoted), maxClusterCost)}
}

// errFleetCost is the error of expressions that cost too much for a fleet.
func errFleetCost() error {
	return fmt.Errorf("spec.predicates: the CEL expressions cost more than %d units of CEL for all clusters together; "+
		"simplify them, or select by labels and claims first", maxFleetCost)
}
