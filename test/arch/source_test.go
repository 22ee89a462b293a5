package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is the parsed source of one package, its tests left out.
type source struct {
	// path is that below the module root, and name that of the package clause.
	path, name string
	set        *token.FileSet
	files      []*ast.File
}

// parseSource reads the files of a package.
func parseSource(path, name string, files []string) (source, error) {
	s := source{path: path, name: name, set: token.NewFileSet()}
	for _, file := range files {
		parsed, err := parser.ParseFile(s.set, file, nil, parser.ParseComments)
		if err != nil {
			return s, fmt.Errorf("parsing %s: %w", file, err)
		}
		s.files = append(s.files, parsed)
	}
	return s, nil
}

// at names a place of the source.
func (s source) at(pos token.Pos) string {
	p := s.set.Position(pos)
	return fmt.Sprintf("%s/%s:%d", s.path, filepath.Base(p.Filename), p.Line)
}

func (s source) file(f *ast.File) string { return filepath.Base(s.set.Position(f.Package).Filename) }

// checkName complains about a package name that says nothing.
func (s source) checkName() []string {
	if slices.Contains(bannedPackages, s.name) {
		return []string{fmt.Sprintf("%s: a package must not be called %s; name it after what it holds", s.path, s.name)}
	}
	return nil
}

// checkComment complains about a package without a story.
func (s source) checkComment() []string {
	if slices.ContainsFunc(s.files, func(f *ast.File) bool { return f.Doc != nil && f.Doc.Text() != "" }) {
		return nil
	}
	return []string{fmt.Sprintf("%s: package %s has no package comment", s.path, s.name)}
}

// checkLengths complains about functions that are too long and about a main.go that does more than call its root.
func (s source) checkLengths() []string {
	var found []string
	for _, f := range s.files {
		for _, decl := range f.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			lines := s.set.Position(function.End()).Line - s.set.Position(function.Pos()).Line + 1
			if lines > maxFunction {
				found = append(found, fmt.Sprintf("%s: function %s has %d lines, and %d are the most",
					s.at(function.Pos()), function.Name.Name, lines, maxFunction))
			}
		}
		lines := s.set.Position(f.FileEnd).Line
		if s.file(f) == "main.go" && strings.HasPrefix(s.path, "cmd/") && lines >= maxMain {
			found = append(found, fmt.Sprintf("%s: it has %d lines and must stay under %d", s.at(f.Package), lines, maxMain))
		}
	}
	return found
}

// checkVariables complains about exported package variables that are not on the list: anybody could turn them.
func (s source) checkVariables() []string {
	var found []string
	for _, f := range s.files {
		for _, decl := range f.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				values, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range values.Names {
					if _, justified := exportedVariables[s.path+"."+name.Name]; name.IsExported() && !justified {
						found = append(found, fmt.Sprintf("%s: exported variable %s can be changed by anybody; make it a function",
							s.at(name.Pos()), name.Name))
					}
				}
			}
		}
	}
	return found
}

// settles is the one package that asks for a repetition without an instant: it decides how passes end.
const settles = "internal/reconcile"

// checkCalls complains about calls that make code depend on the wall clock, end the process, or lose a context. A
// command may: it is where all these begin.
func (s source) checkCalls() []string {
	if s.name == "main" {
		return nil
	}
	var found []string
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch node := n.(type) {
			case *ast.SelectorExpr:
				if of, ok := node.X.(*ast.Ident); ok {
					if instead, forbidden := forbiddenCalls[of.Name+"."+node.Sel.Name]; forbidden {
						found = append(found, fmt.Sprintf("%s: %s.%s: %s", s.at(n.Pos()), of.Name, node.Sel.Name, instead))
					}
				}
			case *ast.KeyValueExpr:
				key, _ := node.Key.(*ast.Ident)
				value, _ := node.Value.(*ast.Ident)
				if s.path != settles && key != nil && value != nil && key.Name == "Requeue" && value.Name == "true" {
					found = append(found, fmt.Sprintf("%s: Requeue: true: return the instant to wake at", s.at(n.Pos())))
				}
			case *ast.CallExpr:
				if name, ok := node.Fun.(*ast.Ident); ok && name.Name == "panic" {
					found = append(found, fmt.Sprintf("%s: panic: return an error", s.at(n.Pos())))
				}
			}
			return true
		})
	}
	return found
}

// checkOneOfEach complains about a second one of what the kit has: pauses that double, lists that are cut, texts that are
// cut, values that are remembered by key.
func (s source) checkOneOfEach() []string {
	var found []string
	complain := func(n ast.Node, format string) { found = append(found, fmt.Sprintf("%s: "+format, s.at(n.Pos()))) }
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch node := n.(type) {
			case *ast.StructType:
				if s.path != "internal/kept" && isGuardedMap(node) {
					complain(node, "values that are remembered by key are in a kept.Map")
				}
			case *ast.BasicLit:
				if s.path == "internal/message" || node.Kind != token.STRING {
					break
				}
				if value, err := strconv.Unquote(node.Value); err == nil && strings.Contains(value, "%d more") {
					complain(node, "a list that counts the others is message.List")
				} else if err == nil && strings.TrimSpace(value) == "..." && !slices.Contains(cutsItself, s.path) {
					complain(node, "a text is shortened by message.Cut")
				}
			case *ast.CallExpr:
				name, ok := node.Fun.(*ast.Ident)
				switch {
				case ok && name.Name == "min" && s.path != "internal/pause" && slices.ContainsFunc(node.Args, isDoubled):
					complain(node, "a pause that grows is pause.Growing")
				case methodName(node.Fun) == "Contains" && len(node.Args) > 0 && isErrorText(node.Args[0]) &&
					!slices.Contains(readsErrors, s.path):
					complain(node, "what the text of an error says is asked in internal/apierror")
				}
			}
			return true
		})
	}
	return found
}

// isGuardedMap reports whether a struct is a mutex and a map of values. Pointers in a map change under its mutex.
func isGuardedMap(s *ast.StructType) bool {
	guards, maps := 0, 0
	for _, field := range s.Fields.List {
		if of, ok := field.Type.(*ast.SelectorExpr); ok && exprName(of.X) == "sync" {
			guards++
		}
		if of, ok := field.Type.(*ast.MapType); ok {
			if _, points := of.Value.(*ast.StarExpr); !points {
				maps++
			}
		}
	}
	return guards == 1 && maps == 1 && len(s.Fields.List) == 2
}

// isErrorText reports whether an expression is the text of an error.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && len(call.Args) == 0 && methodName(call.Fun) == "Error"
}

// isDoubled reports whether an expression is twice another one.
func isDoubled(e ast.Expr) bool {
	product, ok := e.(*ast.BinaryExpr)
	if !ok || product.Op != token.MUL {
		return false
	}
	two, ok := product.X.(*ast.BasicLit)
	return ok && two.Value == "2"
}

// checkPurity complains about imports that a decision cannot need.
func (s source) checkPurity() []string {
	var found []string
	for _, f := range s.files {
		words := strings.Split(strings.TrimSuffix(s.file(f), ".go"), "_")
		if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(pureFiles, word) }) {
			continue
		}
		for _, spec := range f.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && matchesAny(pureNever, path) {
				found = append(found, fmt.Sprintf("%s: a decision takes values and must not import %s", s.at(spec.Pos()), path))
			}
		}
	}
	return found
}

// conditionTypes returns the types of the conditions that the package writes out in full, with their places. A type
// that is a constant of another package than names is not among them.
func (s source) conditionTypes(ofNames map[string]string) map[string]string {
	constants := s.constants()
	for name, value := range ofNames {
		constants["names."+name] = value
	}
	types := map[string]string{}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			of, ok := literal.Type.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Condition" {
				return true
			}
			for _, element := range literal.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok || exprName(pair.Key) != "Type" {
					continue
				}
				if value := text(pair.Value, constants); value != "" {
					types[value] = s.at(pair.Pos())
				}
			}
			return true
		})
	}
	return types
}

// constants returns the string constants of the package.
func (s source) constants() map[string]string {
	found := map[string]string{}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if content := text(value, nil); content != "" && i < len(spec.Names) {
					found[spec.Names[i].Name] = content
				}
			}
			return true
		})
	}
	return found
}

// text is the content of a string literal, or of a constant that has one.
func text(e ast.Expr, constants map[string]string) string {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		content, err := strconv.Unquote(literal.Value)
		if err != nil {
			return ""
		}
		return content
	}
	if selector, ok := e.(*ast.SelectorExpr); ok {
		return constants[exprName(selector.X)+"."+selector.Sel.Name]
	}
	return constants[exprName(e)]
}

func exprName(e ast.Expr) string {
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// methodName returns the name after the last dot of an expression.
func methodName(e ast.Expr) string {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}

// Each piece of source breaks one rule about source, so that a check that stopped working would be seen.
func TestTheChecksOfSourceReportWhatBreaksThem(t *testing.T) {
	const story = "// Package x is a story.\n"
	long := strings.Repeat("\t_ = 1\n", maxFunction)
	for name, tc := range map[string]struct {
		path, file, code string
		check            func(source) []string
		says             string
	}{
		"a banned name": {"agent/util", "a.go", story + "package util", source.checkName, "must not be called util"},
		"a good name":   {"agent/work", "a.go", story + "package work", source.checkName, ""},
		"no story":      {"agent/x", "a.go", "package x", source.checkComment, "has no package comment"},
		"a story":       {"agent/x", "a.go", story + "package x", source.checkComment, ""},
		"a long function": {"agent/x", "a.go", "package x\nfunc f() {\n" + long + "}\n", source.checkLengths,
			"agent/x/a.go:2: function f has 82 lines"},
		"a long method": {"agent/x", "a.go", "package x\ntype t int\nfunc (t) f() {\n" + long + "}\n", source.checkLengths,
			"function f"},
		"a function just short enough": {"agent/x", "a.go", "package x\nfunc f() {\n" + long[:78*len("\t_ = 1\n")] + "}\n",
			source.checkLengths, ""},
		"a long main": {"cmd/x", "main.go", "package main\n" + strings.Repeat("//\n", maxMain), source.checkLengths,
			"must stay under 40"},
		"a short main":         {"cmd/x", "main.go", "package main\nfunc main() {}\n", source.checkLengths, ""},
		"an exported variable": {"agent/x", "a.go", "package x\nvar A, b = 1, 2", source.checkVariables, "variable A"},
		"an own variable":      {"agent/x", "a.go", "package x\nvar a = 1\nconst B = 1", source.checkVariables, ""},
		"the wall clock": {"agent/x", "a.go", "package x\nimport \"time\"\nvar a = time.Now", source.checkCalls,
			"agent/x/a.go:3: time.Now: take the instant"},
		"an exit": {"agent/x", "a.go", "package x\nimport \"os\"\nfunc f() { os.Exit(1) }", source.checkCalls, "os.Exit"},
		"a lost context": {"agent/x", "a.go", "package x\nimport \"context\"\nvar a = context.TODO()", source.checkCalls,
			"context.TODO"},
		"an exit of a command": {"cmd/x", "a.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }", source.checkCalls,
			""},
		"a panic": {"agent/x", "a.go", "package x\nfunc f() { panic(1) }", source.checkCalls, "panic"},
		"a pause of its own": {"agent/x", "a.go", "package x\nfunc f(a, b int) int { return min(2*a, b) }", source.checkOneOfEach,
			"pause.Growing"},
		"a list of its own": {"agent/x", "a.go", "package x\nconst a = `%s and %d more`", source.checkOneOfEach, "message.List"},
		"a cut of its own": {"agent/x", "a.go", `package x
const a = " ..."`, source.checkOneOfEach, "message.Cut"},
		"the text of an error": {"agent/x", "a.go", "package x\nvar a = strings.Contains(err.Error(), `b`)",
			source.checkOneOfEach, "internal/apierror"},
		"a memory of its own": {"agent/x", "a.go", "package x\ntype a struct{ mu sync.Mutex; of map[string]int }",
			source.checkOneOfEach, "kept.Map"},
		"a map that changes in place": {"agent/x", "a.go", "package x\ntype a struct{ mu sync.Mutex; of map[string]*int }",
			source.checkOneOfEach, ""},
		"a list of the kit":    {"internal/message", "a.go", "package x\nconst a = `%s and %d more`", source.checkOneOfEach, ""},
		"a requeue":            {"agent/x", "a.go", "package x\nvar a = r{Requeue: true}", source.checkCalls, "Requeue"},
		"a requeue of the kit": {"internal/reconcile", "a.go", "package x\nvar a = r{Requeue: true}", source.checkCalls, ""},
		"calls of other things": {"agent/x", "a.go", "package x\nfunc f() { clock.Now(); r.Exit(); g(r{Requeue: false}) }",
			source.checkCalls, ""},
		"a decision that reads": {"agent/x", "decide_more.go", "package x\nimport \"context\"", source.checkPurity,
			"must not import context"},
		"a status that reads": {"agent/x", "more_status.go", "package x\nimport \"context\"", source.checkPurity,
			"must not import context"},
		"an act that reads": {"agent/x", "act.go", "package x\nimport \"context\"", source.checkPurity, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := tc.check(invented(t, tc.path, tc.file, tc.code))
			if tc.says == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], tc.says)
		})
	}
}

func TestConditionTypesAreFound(t *testing.T) {
	s := invented(t, "hub/x", "status.go", `package x
const kind = "ByConstant"
func f() {
	a := metav1.Condition{Type: "Written", Reason: "No"}
	b := &metav1.Condition{Type: kind}
	c := metav1.Condition{Type: clusterv1.Elsewhere}
	d := other.Thing{Type: "NoCondition"}
	e := metav1.Condition{Type: names.ConditionOurs}
}`)
	types := s.conditionTypes(map[string]string{"ConditionOurs": "Ours"})
	assert.Equal(t, map[string]string{
		"Written": "hub/x/status.go:4", "ByConstant": "hub/x/status.go:5", "Ours": "hub/x/status.go:8",
	}, types)
}

func invented(t *testing.T, path, file, code string) source {
	t.Helper()
	s := source{path: path, set: token.NewFileSet()}
	parsed, err := parser.ParseFile(s.set, file, code, parser.ParseComments)
	require.NoError(t, err)
	s.name, s.files = parsed.Name.Name, []*ast.File{parsed}
	return s
}
