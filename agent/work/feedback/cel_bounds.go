package feedback

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// maxText and maxItems are the longest text, in bytes, and the longest list that an expression may make. The cost of
	// a call is only known after it, and one call can make a terabyte of a few bytes, so cost alone would not do.
	maxText, maxItems = 1 << 20, 100_000
	// maxDepth is how deep a value is measured.
	maxDepth = 64
)

// costs estimates what a call costs: as Kubernetes does, and too much for a result that is too large.
type costs struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if list, ok := result.(traits.Lister); ok {
		if size, ok := list.Size().(types.Int); !ok || size > maxItems {
			tooMuch := uint64(maxExpressionCost + 1)
			return &tooMuch
		}
	}
	return c.CostEstimator.CallCost(function, overload, args, result)
}

// celTooLong is what a function gives instead of a text that is too long.
func celTooLong() ref.Val { return types.NewErr("the text would be longer than %d bytes", maxText) }

// celMeasure is about how long a value is as text; it gives up above maxText.
func celMeasure(value ref.Val, depth int) int {
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
		total += celMeasure(item, depth+1)
		if lookup != nil {
			if found, ok := lookup.Find(item); ok {
				total += celMeasure(found, depth+1)
			}
		}
	}
	return total
}
