package expressions

import (
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// maxText and maxItems are the longest string, in bytes, and the longest list that an expression may return. CEL knows
	// the cost of a call only after the call, and one call can turn a few bytes into a terabyte, so a limit of the cost is
	// not enough.
	maxText, maxItems = 1 << 20, 100_000
	// maxDepth is how deep a value is nested at most that becomes a string.
	maxDepth = 64
)

// costs estimates the cost of a call as Kubernetes does, and that of a regular expression by its true size. A list that
// is too long costs more than any limit.
type costs struct {
	library.CostEstimator

	patterns *patterns
}

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if list, ok := result.(traits.Lister); ok {
		if size, ok := list.Size().(types.Int); !ok || size > maxItems {
			tooMuch := uint64(math.MaxUint64 / 2)
			return &tooMuch
		}
	}
	switch function {
	case "matches", "find", "findAll":
		cost := c.patterns.of(textAt(args, 1)).cost(len(textAt(args, 0)))
		return &cost
	}
	return c.CostEstimator.CallCost(function, overload, args, result)
}

// celTooLong is the error of a function whose result would be too long.
func celTooLong() ref.Val { return types.NewErr("the text would be longer than %d bytes", maxText) }

// celSize estimates the length of a value as a string, in bytes. It stops above maxText.
func celSize(value ref.Val, depth int) int {
	const scalar = 32
	if depth > maxDepth {
		return maxText + 1
	}
	total := scalar
	var items traits.Iterator
	var lookup traits.Mapper
	switch value := value.(type) {
	case types.String:
		return len(value)
	case types.Bytes:
		return len(value)
	case traits.Mapper:
		items, lookup = value.Iterator(), value
	case traits.Lister:
		items = value.Iterator()
	default:
		return scalar
	}
	for items.HasNext() == types.True && total <= maxText {
		item := items.Next()
		total += celSize(item, depth+1)
		if lookup != nil {
			if found, ok := lookup.Find(item); ok {
				total += celSize(found, depth+1)
			}
		}
	}
	return total
}
