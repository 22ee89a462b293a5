package arch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/spokelet/spokelet/test/arch/measure"
)

// maxKnot is how many files of a package may all reach each other. A user who changes one of a knot has to know all of
// it.
const maxKnot = 6

func TestFilesOfAPackageAreNotAKnot(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: "../..",
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports,
	}, "./agent/...", "./csr/...", "./hub/...", "./internal/...", "./lease/...")
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	for _, p := range loaded {
		require.Empty(t, p.Errors, p.PkgPath)
		f := measure.FilesOf(p)
		knots := f.Knots()
		if len(knots) == 0 {
			continue
		}
		if testing.Verbose() { // Beside a failure, the others are noise.
			t.Logf("%s: %d of %d files: %s", below(p.PkgPath), len(knots[0]), len(f), strings.Join(knots[0], " "))
		}
		if len(knots[0]) > maxKnot {
			t.Errorf("%s: %d files all reach each other, and %d may: move the types that they share into a file that needs none "+
				"of the others. Each file names these others of the knot:\n%s", below(p.PkgPath), len(knots[0]), maxKnot,
				f.Within(knots[0]))
		}
	}
}

func TestAKnotIsPrintedFileByFile(t *testing.T) {
	f := measure.Files{"a": {"b": true, "c": true, "d": true}, "b": {"c": true}, "c": {"a": true}, "d": nil}
	lines := []string{"  a -> b c", "  b -> c", "  c -> a", ""}
	assert.Equal(t, strings.Join(lines, "\n"), f.Within(f.Knots()[0]))
}

// A circle by way of others is a knot; a file that is only used is in none.
func TestKnotsAreFound(t *testing.T) {
	names := func(all ...string) map[string]bool {
		of := map[string]bool{}
		for _, name := range all {
			of[name] = true
		}
		return of
	}
	for sentence, c := range map[string]struct {
		files measure.Files
		want  string
	}{
		"one direction":       {measure.Files{"act": names("facts"), "pass": names("act", "facts"), "facts": nil}, "[]"},
		"two files":           {measure.Files{"a": names("b"), "b": names("a"), "c": names("a")}, "[[a b]]"},
		"a circle by a third": {measure.Files{"a": names("b"), "b": names("c"), "c": names("a"), "d": nil}, "[[a b c]]"},
		"the largest first": {
			measure.Files{"a": names("b"), "b": names("a"), "c": names("d"), "d": names("e"), "e": names("c")}, "[[c d e] [a b]]",
		},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, fmt.Sprint(c.files.Knots())) })
	}
}
