package helm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program on the page for authors is compiled, in a folder of its own in this module.
func TestTheProgramOnThePageForAuthorsIsCompiled(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations/write-an-addon.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "```go\npackage main\n")
	require.True(t, found, "the page has a program")
	program, _, found := strings.Cut(after, "```")
	require.True(t, found)
	program = "package main\n" + program

	parsed, err := parser.ParseFile(token.NewFileSet(), "main.go", program, parser.SkipObjectResolution)
	require.NoError(t, err)
	assert.Equal(t, "main", parsed.Name.Name)
	assert.Less(t, strings.Count(program, "\n"), 70, "the program is small")
	assert.True(t, hasFunction(parsed, "weather"))

	folder, err := os.MkdirTemp("testdata", "page") //nolint:usetesting // it must be a folder of this module
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Mkdir(filepath.Join(folder, "chart"), 0o700))
	chart := []byte("apiVersion: v2\nname: weather\nversion: 1.0.0\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "chart", "Chart.yaml"), chart, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program+"\nfunc main() { _, _ = weather() }\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./"+folder).CombinedOutput()
	require.NoError(t, err, string(out))
}

func hasFunction(file *ast.File, name string) bool {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Name.Name == name {
			return true
		}
	}
	return false
}
