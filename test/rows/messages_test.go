package rows_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
)

// said is the folder of the tests that read nothing but messages.
const said = "test/integration/messages"

// named is a test in the last column of the table of messages.
var named = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")

// TestEveryMessageHasItsTest compares docs/operations/messages.md with the tests.
func TestEveryMessageHasItsTest(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	table, err := os.ReadFile(filepath.Join(root, "docs", "operations", "messages.md"))
	require.NoError(t, err)
	listed, rows := map[string]bool{}, 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what is wrong") {
			continue
		}
		rows++
		require.Len(t, cells, 5, line)
		found := named.FindAllStringSubmatch(cells[4], -1)
		assert.NotEmpty(t, found, "no test reads the message of: %s", cells[0])
		for _, match := range found {
			assert.Contains(t, testsIn(t, filepath.Join(root, match[1])), match[2], "package %s", match[1])
			listed[match[1]+": "+match[2]] = true
		}
	}
	require.NotZero(t, rows)
	for _, test := range testsIn(t, filepath.Join(root, said)) {
		assert.True(t, listed[said+": "+test], "%s stands in no table of messages", test)
	}
}

// testsIn lists the tests in a folder.
func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there is no test in %s", folder)
	var tests []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && strings.HasPrefix(function.Name.Name, "Test") && function.Name.Name != "TestMain" {
				tests = append(tests, function.Name.Name)
			}
		}
	}
	return tests
}
