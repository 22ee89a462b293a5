package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkWaits complains about tests that sleep, and about a cleanup that uses the context of its test: it has ended by
// then, so that what should be deleted stays.
func (s source) checkWaits() []string {
	var found []string
	for _, f := range s.files {
		// The time of such a test is not that of the machine, and passes at once.
		bubble := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch of, name := calls(call); {
			case of == "time" && name == "Sleep" && !bubble:
				found = append(found, fmt.Sprintf("%s: time.Sleep: wait until something holds", s.at(n.Pos())))
			case name == "Cleanup" && len(call.Args) == 1:
				found = append(found, s.checkCleanup(of, call.Args[0])...)
			}
			return true
		})
	}
	return found
}

// checkCleanup looks at the cleanup of a test that has a name.
func (s source) checkCleanup(test string, cleanup ast.Expr) []string {
	var found []string
	ast.Inspect(cleanup, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		of, name := calls(call)
		if of == test && name == "Context" {
			found = append(found, fmt.Sprintf("%s: %s.Context has ended in a cleanup: use context.WithoutCancel", s.at(n.Pos()), of))
		}
		return of != "context" || name != "WithoutCancel"
	})
	return found
}

// calls returns the two names of a call such as time.Sleep; empty for calls of another form.
func calls(call *ast.CallExpr) (of, name string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := selector.X.(*ast.Ident); ok {
		of = x.Name
	}
	return of, selector.Sel.Name
}

// root is the top of the repository.
const root = "../.."

// parseFiles reads all files of the repository whose names end so, those of nested modules too.
func parseFiles(t *testing.T, end string) source {
	t.Helper()
	s := source{set: token.NewFileSet()}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, end) {
			return nil
		}
		parsed, err := parser.ParseFile(s.set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		s.files = append(s.files, parsed)
		return err
	}))
	return s
}

func TestNoTestSleepsOrCleansUpWithAContextThatHasEnded(t *testing.T) {
	s := parseFiles(t, "_test.go")
	require.Greater(t, len(s.files), 300, "the repository has that many files with tests")
	assert.Empty(t, s.checkWaits())
}

func TestWhatTestsMustNotDoIsFound(t *testing.T) {
	s := invented(t, "test/x", "x_test.go", `package x
func f(t *testing.T) {
	time.Sleep(1)
	t.Cleanup(func() { _ = c.Delete(t.Context(), o) })
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), o) })
	t.Cleanup(stop)
	c.Create(t.Context(), o)
}`)
	found := s.checkWaits()
	require.Len(t, found, 2)
	assert.Contains(t, found[0], "test/x/x_test.go:3: time.Sleep")
	assert.Contains(t, found[1], "test/x/x_test.go:4: t.Context has ended")

	s = invented(t, "test/x", "x_test.go", "package x\nimport \"testing/synctest\"\nfunc f() { time.Sleep(1) }")
	assert.Empty(t, s.checkWaits())
}
