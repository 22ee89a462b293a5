package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A module with one package, whose figures are known.
func TestWhatIsCountedOfAModule(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26\n",
		"kit/doc.go":    "// Package kit is counted.\npackage kit\n",
		"kit/a_test.go": "package kit\n\nvar _ = 1\n",
		"kit/a.go": strings.Join([]string{
			"package kit", "", `import ("context"; "os"; "sync"; "time")`, "", "var Turned, other = 1, 2", "",
			"type Known struct {", "\tmu sync.RWMutex", "}", "",
			"func New(a, b, c int) *Known { return use() }", "",
			"func (k *Known) Reconcile() string {", "\t_, _ = context.Background(), context.TODO()", "\ttime.Sleep(1) //nolint:all // a reason",
			"\treturn os.Getenv(time.Now().String())", "}", "",
		}, "\n"),
		"kit/b.go": "package kit\n\ntype result struct{ Requeue bool }\n\nfunc use() *Known { _ = result{Requeue: true}; return New(other, 0, 0) }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	t.Setenv("GOWORK", "off")
	all, err := Load(t.Context(), dir, "./...")
	require.NoError(t, err)
	require.Len(t, all, 1)
	kit := all[0]
	functions := kit.Functions
	kit.Functions = nil
	assert.Equal(t, Package{
		Path: "kit", Files: 3, Lines: 24, TestLines: 3, Exported: 3, Knot: 2, HasDoc: true,
		Counts: map[string]int{
			"Requeue: true": 1, "time.Now": 1, "time.Sleep": 1, "context.Background, TODO": 2, "reads of the environment": 1,
			"memory with a mutex": 1, "exported variables": 1, "nolint": 1,
		},
	}, kit)
	require.Len(t, functions, 3)
	assert.Equal(t, Function{Place: "kit/a.go:13", Name: "Reconcile", Lines: 5}, functions[0])

	var printed strings.Builder
	require.NoError(t, Print(&printed, all))
	words := strings.Join(strings.Fields(printed.String()), " ")
	for _, row := range []string{
		"kit 3 24 3 3 2", "packages, files, lines, lines of tests 1, 3, 24, 3",
		"lines of a function: median, p95, most 1, 5, 5 (Reconcile kit/a.go:13)",
		"most parameters of a constructor 3, New kit/a.go:11", "longest main none",
	} {
		assert.Contains(t, words, row)
	}
}

func TestPackagesThatDoNotBuildAreAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/m\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package m\n\nvar a = missing\n"), 0o600))
	t.Setenv("GOWORK", "off")
	_, err := Load(t.Context(), dir, "./...")
	require.ErrorContains(t, err, "missing")
}
