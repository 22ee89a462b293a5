package helm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileOnPage is a file on a page: a paragraph that begins with its name, and a block.
var fileOnPage = regexp.MustCompile(
	"(?m)^`([^`\\n]+)`[^\\n]*\\n(?:[^\\n`]+\\n)*\\n```(?:go|yaml)\\n((?:[^`\\n].*\\n|\\n)*)```\\n")

// The add-on on the page for authors and its test are compiled, in a folder of their own in this module. The whole page
// is followed by test/integration/author.
func TestTheProgramOnThePageForAuthorsIsCompiled(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations/write-an-addon.md")
	require.NoError(t, err)
	files := map[string]string{}
	for _, match := range fileOnPage.FindAllStringSubmatch(string(page), -1) {
		files[match[1]] = match[2]
	}
	program := files["weather.go"]
	require.NotEmpty(t, program, "the page has a program")
	require.NotEmpty(t, files["weather_test.go"], "and its test")

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
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main_test.go"), []byte(files["weather_test.go"]), 0o600))
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
