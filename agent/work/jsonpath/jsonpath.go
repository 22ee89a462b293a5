package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/client-go/third_party/forked/golang/template"
	parser "k8s.io/client-go/util/jsonpath"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// MaxLength is the greatest length of a JSON path, a JSON pointer or a jq expression, in bytes.
	MaxLength = 4096
	// maxVisits is how many values the evaluation of one JSON path may visit. Every ".." multiplies the number of results
	// by the depth of the object, and all of them are in memory at once. maxAllVisits is the limit for all paths of one
	// manifest together.
	maxVisits, maxAllVisits = 250_000, 1_000_000
	// maxQuoted is how much of an expression a message quotes, in bytes.
	maxQuoted = 200
)

// Path is a parsed JSON path. It never changes, so several passes may use it at a time.
type Path struct {
	text string
	root parser.Node
}

// CheckLength returns an error if an expression is too long to be parsed: the memory of nested filters grows with the
// square of its length. kind names the language in the error.
func CheckLength(kind, expression string) error {
	if len(expression) <= MaxLength {
		return nil
	}
	return fmt.Errorf("the %s that begins with %q has %d bytes, more than the limit of %d; divide it",
		kind, message.Cut(expression, maxQuoted), len(expression), MaxLength)
}

// Quote quotes an expression in a message, shortened.
func Quote(expression string) string { return strconv.Quote(message.Cut(expression, maxQuoted)) }

// Parse parses a JSON path without outer braces.
func Parse(path string) (parsed Path, err error) {
	if err := CheckLength("JSON path", path); err != nil {
		return Path{}, err
	}
	// Any author of a work writes paths, and a panic of the library must not stop the agent.
	defer func() {
		if fault := recover(); fault != nil {
			parsed, err = Path{}, fmt.Errorf("the JSON path %s cannot be parsed: %v", Quote(path), fault)
		}
	}()
	tree, err := parser.Parse("path", "{"+path+"}")
	switch {
	case err != nil:
		return Path{}, fmt.Errorf("the JSON path %s cannot be parsed: %w", Quote(path), err)
	case len(tree.Root.Nodes) != 1:
		return Path{}, fmt.Errorf("the JSON path %s cannot be parsed: it is more than one path", Quote(path))
	}
	return Path{text: path, root: tree.Root.Nodes[0]}, nil
}

// Find returns the values that the path selects in an object, those of a map in the order of its keys. A missing key
// selects nothing. The evaluation uses up the budget, which the paths of a manifest share.
func (p Path) Find(object map[string]any, budget *Budget) ([]any, error) {
	s := search{left: min(maxVisits, budget.left)}
	before := s.left
	found, err := s.walk([]any{object}, p.root)
	budget.left -= before - max(s.left, 0)
	switch {
	case errors.Is(err, errVisits) && before < maxVisits:
		return nil, fmt.Errorf("the JSON path %s and those before it look at more than %d values, which is the limit; "+
			"name the fields instead of '..' and '*'", Quote(p.text), maxAllVisits)
	case errors.Is(err, errVisits):
		return nil, fmt.Errorf("the JSON path %s looks at more than %d values, which is the limit; "+
			"name the fields instead of '..' and '*'", Quote(p.text), maxVisits)
	case err != nil:
		return nil, fmt.Errorf("the JSON path %s cannot be evaluated: %w", Quote(p.text), err)
	}
	return found, nil
}

// errVisits means that an evaluation reached its limit.
var errVisits = errors.New("too many values")

// Budget is how many values the paths of one manifest may still visit together.
type Budget struct{ left int }

// NewBudget returns the budget of one manifest.
func NewBudget() *Budget { return &Budget{left: maxAllVisits} }

// search is one evaluation of a JSON path.
type search struct {
	// left is how many values may still be visited.
	left int
}

// visit counts visited values.
func (s *search) visit(count int) error {
	if s.left -= count; s.left < 0 {
		return errVisits
	}
	return nil
}

// walk evaluates one node of the path on several values.
func (s *search) walk(input []any, node parser.Node) ([]any, error) {
	if err := s.visit(len(input)); err != nil {
		return nil, err
	}
	switch node := node.(type) {
	case *parser.ListNode:
		return s.list(input, node)
	case *parser.TextNode:
		return []any{node.Text}, nil
	case *parser.FieldNode:
		return fields(input, node.Value), nil
	case *parser.ArrayNode:
		return s.elements(input, node)
	case *parser.FilterNode:
		return s.filter(input, node)
	case *parser.IntNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.BoolNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.FloatNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.WildcardNode:
		return s.wildcard(input)
	case *parser.RecursiveNode:
		return s.descend(nil, input)
	case *parser.UnionNode:
		return s.union(input, node)
	case *parser.IdentifierNode:
		return nil, fmt.Errorf("%q is for templates: a range or an end is not supported", node.Name)
	}
	return nil, fmt.Errorf("%v is not supported", node)
}

// list evaluates one node after the other.
func (s *search) list(input []any, node *parser.ListNode) ([]any, error) {
	for _, next := range node.Nodes {
		var err error
		if input, err = s.walk(input, next); err != nil {
			return nil, err
		}
	}
	return input, nil
}

// fields returns the values of a key in maps.
func fields(input []any, key string) []any {
	var found []any
	for _, value := range input {
		if object, ok := value.(map[string]any); ok {
			if inner, exists := object[key]; exists {
				found = append(found, inner)
			}
		}
	}
	return found
}

// elements returns elements of lists by index or slice.
func (s *search) elements(input []any, node *parser.ArrayNode) ([]any, error) {
	var found []any
	for _, value := range input {
		if value == nil {
			continue
		}
		items, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is not a list", Describe(value))
		}
		first, end, step, err := bounds(node, len(items))
		if err != nil {
			return nil, err
		}
		if first == end {
			return found, nil // like client-go, which skips the remaining lists as well
		}
		if err := s.visit(end - first); err != nil {
			return nil, err
		}
		for i := first; i < end; i += step {
			found = append(found, items[i])
		}
	}
	return found, nil
}

// bounds returns the first index, the index after the last, and the step of a slice of a list with the length.
func bounds(node *parser.ArrayNode, length int) (first, end, step int, err error) {
	from, to, by := node.Params[0], node.Params[1], node.Params[2]
	first, end, step = 0, length, 1
	if from.Known {
		first = from.Value
	}
	if first < 0 {
		first += length
	}
	if to.Known {
		end = to.Value
	}
	if end < 0 || (end == 0 && to.Derived) {
		end += length
	}
	switch {
	case first == end:
		return first, end, step, nil
	case first < 0 || first >= length:
		return 0, 0, 0, fmt.Errorf("array index out of bounds: index %d, length %d", first, length)
	case end < 0 || end > length:
		return 0, 0, 0, fmt.Errorf("array index out of bounds: index %d, length %d", end-1, length)
	case first > end:
		return 0, 0, 0, fmt.Errorf("starting index %d is greater than ending index %d", first, end)
	}
	if by.Known {
		if step = by.Value; step <= 0 {
			return 0, 0, 0, errors.New("step must be > 0")
		}
	}
	return first, end, step, nil
}

// wildcard returns the members of maps and lists and the bytes of strings.
func (s *search) wildcard(input []any) ([]any, error) {
	var found []any
	for _, value := range input {
		if err := s.visit(sizeOf(value)); err != nil {
			return nil, err
		}
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				found = append(found, value[key])
			}
		case []any:
			found = append(found, value...)
		case string:
			for i := range len(value) {
				found = append(found, value[i])
			}
		}
	}
	return found, nil
}

// sizeOf returns the number of members of a value.
func sizeOf(value any) int {
	switch value := value.(type) {
	case map[string]any:
		return len(value)
	case []any:
		return len(value)
	case string:
		return len(value)
	}
	return 0
}

// descend appends to found the values that have members and, after each, its members at any depth.
func (s *search) descend(found, input []any) ([]any, error) {
	for _, value := range input {
		if err := s.visit(1); err != nil {
			return nil, err
		}
		if sizeOf(value) == 0 {
			continue
		}
		found = append(found, value)
		var inner []any
		switch value := value.(type) {
		case map[string]any:
			if err := s.visit(len(value)); err != nil {
				return nil, err
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				inner = append(inner, value[key])
			}
		case []any:
			inner = value
		}
		var err error
		if found, err = s.descend(found, inner); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// union evaluates several nodes on the same values.
func (s *search) union(input []any, node *parser.UnionNode) ([]any, error) {
	var found []any
	for _, list := range node.Nodes {
		some, err := s.walk(input, list)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// filter returns the elements of lists for which a comparison holds.
func (s *search) filter(input []any, node *parser.FilterNode) ([]any, error) {
	var found []any
	for _, value := range input {
		items, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is not a list and cannot be filtered", Describe(value))
		}
		for _, item := range items {
			pass, err := s.passes(item, node)
			if err != nil {
				return nil, err
			}
			if pass {
				found = append(found, item)
			}
		}
	}
	return found, nil
}

// passes reports whether the comparison of a filter holds for one element.
func (s *search) passes(item any, node *parser.FilterNode) (bool, error) {
	lefts, err := s.walk([]any{item}, node.Left)
	// In client-go an index that is out of bounds exists.
	exists := err != nil || len(lefts) > 0
	switch {
	case errors.Is(err, errVisits):
		return false, err
	case node.Operator == "exists":
		return exists, nil
	case err != nil || len(lefts) == 0:
		return false, err
	}
	rights, err := s.walk([]any{item}, node.Right)
	if err != nil || (len(lefts) == 1 && len(rights) == 0) {
		return false, err
	}
	if len(lefts) > 1 || len(rights) > 1 {
		return false, errors.New("can only compare one element at a time")
	}
	left, right := lefts[0], rights[0]
	switch node.Operator {
	case "<":
		return template.Less(left, right)
	case ">":
		return template.Greater(left, right)
	case "==":
		return template.Equal(left, right)
	case "!=":
		return template.NotEqual(left, right)
	case "<=":
		return template.LessEqual(left, right)
	case ">=":
		return template.GreaterEqual(left, right)
	}
	return false, fmt.Errorf("the operator %s of a filter is not supported", node.Operator)
}

// Describe names the kind of a JSON value in a message.
func Describe(value any) string {
	switch value.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case float64:
		return "a number with a fraction"
	}
	return fmt.Sprintf("a %T", value)
}
