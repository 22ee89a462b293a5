package reference

import (
	"go/ast"
	"go/constant"
	"regexp"
	"slices"
	"strings"
)

// label is the form of the name of a label.
var label = regexp.MustCompile(`^[a-z][a-z_]*$`)

// labels takes the labels of a metric from the call that describes it: the constant texts after its name, also those of
// a list, and those of the list in a function of the same file that the call is of.
func (r *reader) labels(call *ast.CallExpr) {
	name := ""
	var found []string
	for _, arg := range call.Args {
		if options, is := arg.(*ast.CompositeLit); is && name == "" {
			name = r.nameIn(options)
			continue
		}
		if text := r.text(arg); name == "" && metric.MatchString(text) {
			name = text
			continue
		}
		found = append(found, r.labelsIn(arg)...)
	}
	if name == "" {
		return
	}
	if of, is := call.Fun.(*ast.Ident); is && of.Obj != nil {
		if assigned, is := of.Obj.Decl.(*ast.AssignStmt); is {
			ast.Inspect(assigned, func(node ast.Node) bool {
				if list, is := node.(*ast.CompositeLit); is {
					found = append(found, r.labelsIn(list)...)
				}
				return true
			})
		}
	}
	slices.Sort(found)
	r.code.Labels[name] = slices.Compact(found)
}

// nameIn returns the name of the metric in its options; empty where they have none.
func (r *reader) nameIn(options *ast.CompositeLit) string {
	for _, element := range options.Elts {
		if pair, is := element.(*ast.KeyValueExpr); is {
			if text := r.text(pair.Value); metric.MatchString(text) {
				return text
			}
		}
	}
	return ""
}

// labelsIn returns the labels that an argument has.
func (r *reader) labelsIn(arg ast.Expr) []string {
	list, is := arg.(*ast.CompositeLit)
	if !is {
		if text := r.text(arg); label.MatchString(text) && !metric.MatchString(text) {
			return []string{text}
		}
		return nil
	}
	var found []string
	for _, element := range list.Elts {
		if _, pair := element.(*ast.KeyValueExpr); !pair {
			found = append(found, r.labelsIn(element)...)
		}
	}
	return found
}

// text returns the constant text of an expression; empty for any other.
func (r *reader) text(of ast.Expr) string {
	value := r.loaded.TypesInfo.Types[of].Value
	if value == nil || value.Kind() != constant.String {
		return ""
	}
	return strings.TrimSpace(constant.StringVal(value))
}
