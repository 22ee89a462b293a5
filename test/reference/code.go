package reference

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Code holds what the code of the programs says to the outside.
type Code struct {
	// Reasons are the reasons of conditions and Events, Metrics the names of metrics, each with a place in the code.
	Reasons, Metrics map[string]string
	// Labels are the labels of each metric, in their order.
	Labels map[string][]string
}

var (
	// reasonName is a constant of ours that holds a reason, reasonOfAPI one of the API modules.
	reasonName  = regexp.MustCompile(`^([rR]eason|[eE]vent)[A-Z]`)
	reasonOfAPI = regexp.MustCompile(
		`Reason|^AppliedManifest(Complete|Failed|SSA)|^(ConditionRule|RegistrationApplied)[A-Z]`)
	// word is the form of a reason.
	word = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	// metric is the form of the name of a metric.
	metric = regexp.MustCompile(`^spokelet_[a-z0-9_]+$`)
)

// eventfReason is the place of the reason among the arguments of Eventf.
const eventfReason = 3

// Load reads the code of the programs below root.
func Load(root string) (*Code, error) {
	config := &packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports,
	}
	loaded, err := packages.Load(config, "./agent/...", "./csr/...", "./hub/...", "./internal/...", "./lease/...")
	if err != nil {
		return nil, fmt.Errorf("loading the packages: %w", err)
	}
	code := &Code{Reasons: map[string]string{}, Metrics: map[string]string{}, Labels: map[string][]string{}}
	for _, one := range loaded {
		for _, problem := range one.Errors {
			return nil, fmt.Errorf("loading package %s: %w", one.PkgPath, problem)
		}
		reader := &reader{root: root, code: code, loaded: one}
		for _, file := range one.Syntax {
			ast.Inspect(file, reader.read)
		}
	}
	return code, nil
}

// reader collects what one package says.
type reader struct {
	root   string
	code   *Code
	loaded *packages.Package
}

// read looks at one node of the syntax.
func (r *reader) read(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.ValueSpec:
		for _, name := range node.Names {
			if reasonName.MatchString(name.Name) {
				r.reason(name, r.value(r.loaded.TypesInfo.Defs[name]))
			}
		}
	case *ast.Ident:
		if object := r.loaded.TypesInfo.Uses[node]; ofAPI(object) && reasonOfAPI.MatchString(object.Name()) {
			r.reason(node, r.value(object))
		}
	case *ast.KeyValueExpr:
		if key, ok := node.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "reason") {
			r.expression(node.Value)
		}
	case *ast.AssignStmt:
		for i, left := range node.Lhs {
			selector, ok := left.(*ast.SelectorExpr)
			if ok && strings.EqualFold(selector.Sel.Name, "reason") && len(node.Rhs) == len(node.Lhs) {
				r.expression(node.Rhs[i])
			}
		}
	case *ast.CallExpr:
		r.labels(node)
		selector, ok := node.Fun.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == "Eventf" && len(node.Args) > eventfReason {
			r.expression(node.Args[eventfReason])
		}
	case *ast.BasicLit:
		if text := strings.Trim(node.Value, `"`); metric.MatchString(text) {
			r.code.Metrics[text] = r.place(node)
		}
	}
	return true
}

// ofAPI reports whether an object is one of the API modules.
func ofAPI(object types.Object) bool {
	return object != nil && object.Pkg() != nil &&
		strings.HasPrefix(object.Pkg().Path(), "open-cluster-management.io/api/")
}

// expression takes the value of an expression of type string, if it is constant.
func (r *reader) expression(expression ast.Expr) {
	value := r.loaded.TypesInfo.Types[expression]
	if value.Value != nil && types.Identical(value.Type.Underlying(), types.Typ[types.String]) {
		if named, ok := value.Type.(*types.Named); ok && named.Obj().Name() != "string" {
			return
		}
		r.reason(expression, constant.StringVal(value.Value))
	}
}

// value returns the value of a constant of type string, else nothing.
func (*reader) value(object types.Object) string {
	known, ok := object.(*types.Const)
	if !ok || known.Val().Kind() != constant.String {
		return ""
	}
	if named, ok := known.Type().(*types.Named); ok && strings.HasPrefix(named.Obj().Pkg().Path(), "github.com/") {
		return "" // A type of ours: a value that stays inside the process.
	}
	return constant.StringVal(known.Val())
}

// reason takes a reason, if it has the form of one.
func (r *reader) reason(node ast.Node, text string) {
	if word.MatchString(text) {
		r.code.Reasons[text] = r.place(node)
	}
}

// place names the file and line of a node below the module root.
func (r *reader) place(node ast.Node) string {
	position := r.loaded.Fset.Position(node.Pos())
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(position.Filename, r.root+"/"), position.Line)
}
