package rows_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/rows"
	"github.com/spokelet/spokelet/test/sandbox"
)

func TestEveryBehaviourHasItsTests(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	tests, err := rows.Scan(root)
	require.NoError(t, err)
	pages, err := rows.Pages(root)
	require.NoError(t, err)
	known := map[string]bool{}
	for page, text := range pages {
		for _, row := range rows.Parse(page, text) {
			assert.False(t, known[row.ID], "%s stands twice", row.ID)
			known[row.ID] = true
			assert.NotEmpty(t, row.Behaviour, "%s has no sentence", row.ID)
			assert.NotEmpty(t, tests[row.ID], "no test has the comment // Shows: %s", row.ID)
			assert.Equal(t, tests.Column(row), row.Tests, "%s: run make rows", row.ID)
		}
	}
	require.NotEmpty(t, known)
	for id, where := range tests {
		assert.True(t, known[id], "%v: no table has the behaviour %s: add a row with this name and a sentence to a table "+
			"\"name | behaviour | tests\" of docs, and run make rows", where, id)
	}
}

func TestSplit(t *testing.T) {
	for comment, want := range map[string][]string{
		"work/drift":                 {"work/drift"},
		"work/drift, hub/precedence": {"work/drift", "hub/precedence"},
		"":                           nil,
	} {
		assert.Equal(t, want, rows.Split(comment), comment)
	}
}

func TestRewriteKeepsEverythingElse(t *testing.T) {
	tests := rows.Tests{"p/a": {"x: TestA", "y: TestB"}}
	const page = "# Title\n\n| flag | value | use |\n|---|---|---|\n| `a` | b | c |\n\n" +
		"| name | behaviour | tests |\n|---|---|---|\n"
	assert.Equal(t, page+"| `a` | it works | `x: TestA`<br>`y: TestB` |\n| `b` | no |  |\n\nEnd\n",
		tests.Rewrite("p", page+"| `a` | it works | old |\n| `b` | no |  |\n\nEnd\n"))
}
