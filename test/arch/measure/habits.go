package measure

import (
	"go/ast"
	"go/token"
	"strings"
)

// Habit is something that the source has or has not, and that is counted.
type Habit struct {
	Name  string
	count func(*ast.File) int
}

// Habits are all that is counted, in the order in which a table has them.
var Habits = []Habit{
	{"Requeue: true", countNodes(func(n ast.Node) bool {
		pair, is := n.(*ast.KeyValueExpr)
		return is && isNamed(pair.Key, "Requeue") && isNamed(pair.Value, "true")
	})},
	{"time.Now", countCalls("time", "Now")},
	{"time.Sleep", countCalls("time", "Sleep")},
	{"context.Background, TODO", countCalls("context", "Background", "TODO")},
	{"reads of the environment", countCalls("os", "Getenv", "LookupEnv", "Environ")},
	{"memory with a mutex", countNodes(func(n ast.Node) bool {
		kind, is := n.(*ast.StructType)
		if !is {
			return false
		}
		for _, field := range kind.Fields.List {
			if of, is := field.Type.(*ast.SelectorExpr); is && isNamed(of.X, "sync") && strings.HasSuffix(of.Sel.Name, "Mutex") {
				return true
			}
		}
		return false
	})},
	{"exported variables", func(file *ast.File) (n int) {
		for _, declared := range file.Decls {
			general, is := declared.(*ast.GenDecl)
			if !is || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				values, is := spec.(*ast.ValueSpec)
				for i := 0; is && i < len(values.Names); i++ {
					if values.Names[i].IsExported() {
						n++
					}
				}
			}
		}
		return n
	}},
	{"nolint", func(file *ast.File) (n int) {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, "//nolint") {
					n++
				}
			}
		}
		return n
	}},
}

func countNodes(such func(ast.Node) bool) func(*ast.File) int {
	return func(file *ast.File) (count int) {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil && such(n) {
				count++
			}
			return true
		})
		return count
	}
}

// countCalls counts the uses of functions of a package.
func countCalls(of string, functions ...string) func(*ast.File) int {
	return countNodes(func(n ast.Node) bool {
		selector, is := n.(*ast.SelectorExpr)
		if !is || !isNamed(selector.X, of) {
			return false
		}
		for _, name := range functions {
			if selector.Sel.Name == name {
				return true
			}
		}
		return false
	})
}

func isNamed(e ast.Expr, name string) bool {
	ident, is := e.(*ast.Ident)
	return is && ident.Name == name
}
