package rows_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/rows"
	"github.com/spokelet/spokelet/test/sandbox"
)

func TestEveryScenarioHasItsTests(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	tests, err := rows.Scan(root)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, rows.Tables, "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	known := map[string]bool{}
	for _, file := range files {
		table, err := os.ReadFile(file)
		require.NoError(t, err)
		all := rows.Parse(string(table))
		require.NotEmpty(t, all, "%s has no table", file)
		for _, row := range all {
			for _, id := range rows.Split(row.ID) {
				assert.False(t, known[id], "%s stands twice", id)
				known[id] = true
			}
			assert.NotEmpty(t, tests.Column(row), "%s: no test has the comment // Row: %s", filepath.Base(file), row.ID)
			assert.Equal(t, tests.Column(row), row.Tests, "%s: run make rows", filepath.Base(file))
		}
	}
	for id, where := range tests {
		assert.True(t, known[id], "%v: no table has the scenario %s", where, id)
	}
}

func TestSplit(t *testing.T) {
	for comment, want := range map[string][]string{
		"a_test.go:1": {"a_test.go:1"},
		"test/e2e/a_test.go:1, AF:pkg/b_test.go:2-3": {"a_test.go:1", "b_test.go:2-3"},
		"a_test.go:1 (through a proxy)":              {"a_test.go:1"},
		"spoke/x/*_test.go":                          {"spoke/x/*_test.go"},
		"":                                           nil,
		"work 6.2 a: b, c / d (x)":                   {"work 6.2 a: b, c / d (x)"},
	} {
		assert.Equal(t, want, rows.Split(comment), comment)
	}
}

func TestRewriteKeepsEverythingElse(t *testing.T) {
	tests := rows.Tests{"a_test.go:1": {"x: TestA", "y: TestB"}}
	const table = "# Title\n\n| row | scenario | tests |\n|---|---|---|\n| `a_test.go:1` | it works | old |\n| `b_test.go:2` | no | - not here |\n"
	assert.Equal(t, "# Title\n\n| row | scenario | tests |\n|---|---|---|\n"+
		"| `a_test.go:1` | it works | `x: TestA`<br>`y: TestB` |\n| `b_test.go:2` | no | - not here |\n", tests.Rewrite(table))
}
