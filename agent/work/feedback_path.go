package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

const (
	// maxPaths bounds what paths remembers; a spec that changes forever must not fill the memory.
	maxPaths = 1024
	// maxDescents and maxUnion bound what a path can find: every further ".." multiplies the results by the depth of the
	// object and every union by its length, and the results are all in memory before the first is used.
	maxDescents, maxUnion = 2, 64
)

// compiledPath is a JSON path ready to be evaluated, and the same as it was parsed.
type compiledPath struct {
	program *jsonpath.JSONPath
	root    jsonpath.Node
}

// compilePath parses a path and refuses one that could find more than fits into memory. Loops are refused too: they are
// for templates, find nothing without one, and the evaluator cannot use them twice.
func compilePath(path string) (compiledPath, error) {
	text := "{" + path + "}"
	parsed, err := jsonpath.Parse("feedback", text)
	if err != nil {
		return compiledPath{}, fmt.Errorf("the JSON path %q cannot be parsed: %w", path, err)
	}
	form := formOf(parsed.Root)
	switch {
	case form.loops:
		return compiledPath{}, fmt.Errorf("the JSON path %q has a range or an end, which is not supported", path)
	case form.descents > maxDescents || form.union > maxUnion:
		return compiledPath{}, fmt.Errorf("the JSON path %q has too many '..' or too long unions", path)
	}
	program := jsonpath.New("feedback").AllowMissingKeys(true)
	if err := program.Parse(text); err != nil {
		return compiledPath{}, fmt.Errorf("the JSON path %q cannot be parsed: %w", path, err)
	}
	return compiledPath{program: program, root: parsed.Root}, nil
}

// form is what of a path decides how much it can find: how many descents it has, the product of the lengths of its
// unions, and whether it loops.
type form struct {
	descents, union int
	loops           bool
}

// formOf measures a path.
func formOf(node jsonpath.Node) form {
	f := form{union: 1}
	var inner []jsonpath.Node
	switch node := node.(type) {
	case *jsonpath.IdentifierNode:
		f.loops = true
	case *jsonpath.RecursiveNode:
		f.descents = 1
	case *jsonpath.ListNode:
		inner = node.Nodes
	case *jsonpath.FilterNode:
		inner = []jsonpath.Node{node.Left, node.Right}
	case *jsonpath.UnionNode:
		f.union = max(1, len(node.Nodes))
		for _, list := range node.Nodes {
			inner = append(inner, list)
		}
	}
	for _, next := range inner {
		g := formOf(next)
		f.descents, f.union, f.loops = f.descents+g.descents, min(f.union*g.union, maxUnion+1), f.loops || g.loops
	}
	return f
}

// meetsMap tells whether a path takes all values of some map, whose order is another one each time. It looks at more
// values than the path does where that is simpler.
func meetsMap(root jsonpath.Node, object any) bool {
	list, ok := root.(*jsonpath.ListNode)
	if !ok {
		return false
	}
	at := []any{object}
	for _, node := range list.Nodes {
		var next []any
		switch node := node.(type) {
		case *jsonpath.ListNode:
			return meetsMap(node, object)
		case *jsonpath.FieldNode:
			for _, value := range at {
				if fields, ok := value.(map[string]any); ok && node.Value != "" {
					next = append(next, fields[node.Value])
				} else {
					next = append(next, value)
				}
			}
		case *jsonpath.RecursiveNode, *jsonpath.UnionNode:
			return true
		case *jsonpath.WildcardNode, *jsonpath.ArrayNode, *jsonpath.FilterNode:
			for _, value := range at {
				if fields, ok := value.(map[string]any); ok && len(fields) > 1 {
					return true
				}
				items, _ := value.([]any)
				next = append(next, items...)
			}
		default:
			next = at
		}
		at = next
	}
	return false
}

// sortByText orders values by their JSON.
func sortByText(values []any) {
	slices.SortStableFunc(values, func(a, b any) int {
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		return strings.Compare(string(left), string(right))
	})
}
