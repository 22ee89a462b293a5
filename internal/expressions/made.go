package expressions

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// maxMade is the greatest size of a list or map that an expression makes, in bytes of text, so that one of maxItems
// numbers fits. What an expression makes shares its parts: `[0].map(a, [a, a])` takes the memory of one entry and is as
// large as two to whoever looks at it, and each level more doubles that. So the size is checked where a value is made,
// and all that looks at one has a bound: a comparison, a text, an error that quotes it.
const maxMade = 4 << 20

// scalar is the size of a number, and of a list without entries. An entry has a size even where it is empty.
const scalar, entry = 32, 8

// The lists and maps that an expression has made know their size, so that nobody counts it again at the next level.
type (
	madeList struct {
		traits.Lister

		size int
	}
	madeMap struct {
		traits.Mapper

		size int
	}
	// growingList is the list that a macro such as map or filter adds to.
	growingList struct {
		traits.MutableLister

		size int
	}
)

// String implements fmt.Stringer for an error that quotes the value, which would have all of it.
func (*madeList) String() string { return "a list" }

// String implements fmt.Stringer, as for a list.
func (*madeMap) String() string { return "a map" }

// IsZeroValue implements traits.Zeroer, which the embedded interface hides.
func (l *madeList) IsZeroValue() bool { return l.Size() == types.IntZero }

// IsZeroValue implements traits.Zeroer, which the embedded interface hides.
func (m *madeMap) IsZeroValue() bool { return m.Size() == types.IntZero }

// ToImmutableList implements traits.MutableLister at the end of the macro.
func (l *growingList) ToImmutableList() traits.Lister {
	return &madeList{l.MutableLister.ToImmutableList(), l.size}
}

// celTooLarge is the error of what would make a list or map that is too large.
func celTooLarge() ref.Val {
	return types.NewErr("the list or map would be longer than %d bytes", maxMade)
}

// made returns a value that an expression has made, with its size, or an error if it is too large.
func made(value ref.Val) ref.Val {
	size := sizeUpTo(value, maxMade)
	if size > maxMade {
		return celTooLarge()
	}
	switch value := value.(type) {
	case *madeList, *madeMap:
	case traits.Mapper:
		return &madeMap{value, size}
	case traits.Lister:
		return &madeList{value, size}
	}
	return value
}

// celAdd implements the operator + of CEL. Two lists are refused if they are too large together.
func celAdd(args ...ref.Val) ref.Val {
	adder, ok := args[0].(traits.Adder)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	if _, ok := args[0].(traits.Lister); !ok {
		return adder.Add(args[1])
	}
	size := sizeUpTo(args[0], maxMade) + sizeUpTo(args[1], maxMade) - scalar
	if size > maxMade {
		return celTooLarge()
	}
	switch list := args[0].(type) {
	case *growingList: // It changes in place, as the one of CEL does.
		if failed := list.Add(args[1]); types.IsError(failed) {
			return failed
		}
		list.size = size
		return list
	case traits.MutableLister:
		if failed := list.Add(args[1]); types.IsError(failed) {
			return failed
		}
		return &growingList{list, size}
	}
	sum := adder.Add(args[1])
	if list, ok := sum.(traits.Lister); ok {
		return &madeList{list, size}
	}
	return sum
}

// constructor is a part of a program that makes a list or map. It has the cost of a call, because it looks at what it
// is made of.
type constructor struct {
	interpreter.InterpretableConstructor
}

// makes is the function that a constructor seems to call. No expression can name it.
const makes = "@make"

// newConstructor returns a constructor that checks the size of what it makes. One of constants is no larger than its
// text, and CEL makes it only once.
func newConstructor(part interpreter.InterpretableConstructor) interpreter.Interpretable {
	for _, of := range part.InitVals() {
		if _, ok := of.(interpreter.InterpretableConst); !ok {
			return constructor{part}
		}
	}
	return part
}

// costOfMaking returns what it costs to make a value of a type, of some values: what CEL says, or 0.1 for each byte
// that is counted.
func costOfMaking(kind string, of []ref.Val) uint64 {
	least := uint64(common.ListCreateBaseCost)
	if kind == types.MapType.TypeName() {
		least = common.MapCreateBaseCost
	}
	return max(least, uint64(float64(uncounted(of))*common.StringTraversalCostFactor))
}

// Function implements interpreter.InterpretableCall.
func (constructor) Function() string { return makes }

// OverloadID implements interpreter.InterpretableCall.
func (c constructor) OverloadID() string { return c.Type().TypeName() }

// Args implements interpreter.InterpretableCall.
func (c constructor) Args() []interpreter.InterpretableV2 { return c.InitVals() }

// Exec implements interpreter.InterpretableV2.
func (c constructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return made(c.InterpretableConstructor.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (c constructor) Eval(variables interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(variables))
}

// uncounted returns the size of those lists and maps that the expression has not made itself: someone counts it now.
func uncounted(values []ref.Val) int {
	total := 0
	for _, value := range values {
		if optional, ok := value.(*types.Optional); ok && optional.HasValue() {
			value = optional.GetValue()
		}
		switch value.(type) {
		case *madeList, *madeMap, traits.MutableLister:
		default:
			if isNested(value) {
				total += sizeUpTo(value, maxMade)
			}
		}
	}
	return total
}

// isNested reports whether a value has others.
func isNested(value ref.Val) bool {
	switch value := value.(type) {
	case traits.Mapper, traits.Lister:
		return true
	case *types.Optional:
		return value.HasValue() && isNested(value.GetValue())
	}
	return false
}

// smaller returns the smaller one of the sizes of two values, and looks at no more than a few times as much of either.
func smaller(a, b ref.Val) int {
	if x, ok := a.(traits.Sizer); ok {
		if y, ok := b.(traits.Sizer); ok && x.Size() != y.Size() {
			return 0 // The comparison ends there.
		}
	}
	const first, factor = 1 << 10, 4
	for most := first; ; most *= factor {
		size := min(sizeUpTo(a, most), sizeUpTo(b, most))
		if size <= most || most > maxMade {
			return size
		}
	}
}

// sizeUpTo estimates the length of a value as a text, in bytes. It stops above most.
func sizeUpTo(value ref.Val, most int) int {
	var items traits.Iterator
	var lookup traits.Mapper
	switch value := value.(type) {
	case types.String:
		return len(value)
	case types.Bytes:
		return len(value)
	case *madeList:
		return value.size
	case *madeMap:
		return value.size
	case *growingList:
		return value.size
	case *types.Optional:
		if !value.HasValue() {
			return scalar
		}
		return entry + sizeUpTo(value.GetValue(), most)
	case traits.Mapper:
		items, lookup = value.Iterator(), value
	case traits.Lister:
		items = value.Iterator()
	default:
		return scalar
	}
	total := scalar
	for items.HasNext() == types.True && total <= most {
		item := items.Next()
		total += entry + sizeUpTo(item, most-total)
		if lookup != nil {
			if found, ok := lookup.Find(item); ok {
				total += sizeUpTo(found, most-total)
			}
		}
	}
	return total
}
