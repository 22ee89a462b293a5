package ignore

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/itchyny/gojq"

	"github.com/spokelet/spokelet/agent/work/jsonpath"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// jqLimit is how long one jq expression may run (docs/reference/work.md, "Update strategies").
	jqLimit = time.Second
	// jqTotal is how long all jq expressions of one manifest may run together.
	jqTotal = 10 * time.Second
	// maxJQFound is how many fields one jq expression may select, maxJQSteps how many keys their paths may have together.
	maxJQFound, maxJQSteps = 10_000, 100_000
)

// errJQTotal means that the jq expressions of one manifest took too long.
var errJQTotal = errors.New("the jq expressions take too long")

// ignoreJQ removes the fields that a jq path expression selects, as del does. It may run for jqLimit. The expression
// cannot read the environment of the agent.
func ignoreJQ(ctx context.Context, object map[string]any, expression string) (map[string]any, error) {
	if err := jsonpath.CheckLength("jq expression", expression); err != nil {
		return nil, err
	}
	quoted := jsonpath.Quote(expression)
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("the jq expression %s cannot be parsed: %w", quoted, err)
	}
	if err := checkJQ(query); err != nil {
		return nil, fmt.Errorf("the jq expression %s cannot be used: %w", quoted, err)
	}
	limited, cancel := context.WithTimeout(ctx, jqLimit)
	defer cancel()
	value := toJQ(object)
	found, err := findJQ(limited, value, query)
	var rest any
	if err == nil {
		rest, err = deleteJQ(limited, value, found)
	}
	switch {
	case errors.Is(context.Cause(ctx), errJQTotal):
		return nil, fmt.Errorf("the jq expression %s and those before it run longer than %s", quoted, jqTotal)
	case ctx.Err() != nil:
		return nil, StoppedError{ctx.Err()}
	case limited.Err() != nil:
		return nil, fmt.Errorf("the jq expression %s runs longer than %s", quoted, jqLimit)
	case err != nil && manifest.IsSecret(object):
		return nil, fmt.Errorf("the jq expression %s fails; its error may quote values of the Secret and is not told", quoted)
	case err != nil:
		return nil, fmt.Errorf("the jq expression %s fails: %s", quoted, message.Cut(err.Error(), message.MaxCause))
	}
	object, isMap := fromJQ(rest).(map[string]any)
	if !isMap {
		return nil, fmt.Errorf("the jq expression %s does not leave an object", quoted)
	}
	return object, nil
}

// findJQ returns the paths that an expression selects. It counts them one by one, before they fill the memory.
func findJQ(ctx context.Context, value any, query *gojq.Query) ([]any, error) {
	code, err := gojq.Compile(&gojq.Query{Term: &gojq.Term{
		Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "path", Args: []*gojq.Query{query}},
	}})
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	var found []any
	steps := 0
	for results := code.RunWithContext(ctx, value); ; {
		result, more := results.Next()
		if !more {
			return found, nil
		}
		if failed, bad := result.(error); bad {
			return nil, failed
		}
		path, _ := result.([]any)
		found, steps = append(found, path), steps+len(path)
		if len(found) > maxJQFound || steps > maxJQSteps {
			return nil, fmt.Errorf("it finds more than %d fields, or their paths have more than %d keys together, "+
				"which are the limits; name the fields instead of '..' and '[]'", maxJQFound, maxJQSteps)
		}
	}
}

// deleteJQ returns a value without the values at the paths.
func deleteJQ(ctx context.Context, value any, found []any) (any, error) {
	query, err := gojq.Parse("delpaths($found)")
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, gojq.WithVariables([]string{"$found"}))
	if err != nil {
		return nil, err
	}
	rest, _ := code.RunWithContext(ctx, value, found).Next()
	if failed, bad := rest.(error); bad {
		return nil, failed
	}
	return rest, nil
}

// StoppedError means that the context ended, which is not a fault of the manifest.
type StoppedError struct{ error }

// Unwrap returns the cause.
func (e StoppedError) Unwrap() error { return e.error }

// toJQ copies a JSON value into the types of jq.
func toJQ(value any) any {
	switch value := value.(type) {
	case map[string]any:
		next := make(map[string]any, len(value))
		for key, inner := range value {
			next[key] = toJQ(inner)
		}
		return next
	case []any:
		next := make([]any, len(value))
		for i, inner := range value {
			next[i] = toJQ(inner)
		}
		return next
	case int64:
		return int(value)
	}
	return value
}

// fromJQ copies a value of jq into the types of an unstructured object.
func fromJQ(value any) any {
	switch value := value.(type) {
	case map[string]any:
		next := make(map[string]any, len(value))
		for key, inner := range value {
			next[key] = fromJQ(inner)
		}
		return next
	case []any:
		next := make([]any, len(value))
		for i, inner := range value {
			next[i] = fromJQ(inner)
		}
		return next
	case int:
		return int64(value)
	case *big.Int:
		float, _ := new(big.Float).SetInt(value).Float64()
		return float
	}
	return value
}
