//go:build spokelet_cel

package work

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// interruptEvery is after how many iterations of a loop an evaluation looks whether it is to end.
	interruptEvery = 100
	// maxPrograms and maxProgramText bound what is kept compiled, the latter in bytes of source: a program takes some
	// ten kilobytes, and a spec that changes forever must not fill the memory.
	maxPrograms, maxProgramText = 128, 256 << 10
)

// celPrograms evaluates CEL expressions and keeps them compiled. Nothing is built before the first expression comes:
// the environment takes more than a megabyte, and most agents never see a rule. It is safe for several passes at a time.
type celPrograms struct {
	mu       sync.Mutex
	envs     map[celPurpose]*cel.Env
	compiled map[celKey]celProgram
	text     int
}

// newCEL returns an evaluator of CEL expressions.
func newCEL() celSource { return &celPrograms{} }

// celPurpose is what an expression is for: the answer of a rule or its wording.
type celPurpose bool

const (
	celTest celPurpose = false
	celText celPurpose = true
)

// celKey is one expression.
type celKey struct {
	purpose    celPurpose
	expression string
}

// celProgram is a compiled expression, or why there is none.
type celProgram struct {
	program cel.Program
	err     error
}

// test implements celSource.
func (p *celPrograms) test(ctx context.Context, expression string, object map[string]any, budget *int64) (bool, error) {
	found, err := p.evaluate(ctx, celKey{celTest, expression}, map[string]any{"object": object}, budget)
	if err != nil {
		return false, err
	}
	holds, ok := found.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression %q gives a value of type %s, not a bool",
			shortened(expression, maxQuoted), found.Type().TypeName())
	}
	return holds, nil
}

// maxQuoted is how much of an expression stands in an error about it, in bytes.
const maxQuoted = 200

// wording implements the other half of celSource, see text.
func (p *celPrograms) wording(ctx context.Context, expression string, object map[string]any, result bool, budget *int64,
) (string, error) {
	variables := map[string]any{"object": object, "result": result}
	found, err := p.evaluate(ctx, celKey{celText, expression}, variables, budget)
	if err != nil {
		return "", err
	}
	text, ok := found.Value().(string)
	if !ok {
		return "", fmt.Errorf("the expression %q gives a value of type %s, not a string",
			shortened(expression, maxQuoted), found.Type().TypeName())
	}
	return text, nil
}
