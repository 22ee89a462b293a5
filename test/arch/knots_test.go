package arch

import (
	"fmt"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// maxKnot is how many files of a package may all reach each other. Whoever changes one of a knot has to know all of it.
const maxKnot = 6

// files maps each file of a package to the other files of it whose functions, methods, types, constants or variables it
// names. Fields do not count: they come with their type.
type files map[string]map[string]bool

// filesOf returns the files of a package, by their names. It needs the syntax and the types of the package.
func filesOf(p *packages.Package) files {
	of := func(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }
	all := files{}
	for _, file := range p.Syntax {
		all[of(file.Package)] = map[string]bool{}
	}
	for ident, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types || !isOfPackage(object) {
			continue
		}
		if from, to := of(ident.Pos()), of(object.Pos()); from != to {
			all[from][to] = true
		}
	}
	return all
}

// isOfPackage reports whether an object is a method, or declared at the top of its package.
func isOfPackage(object types.Object) bool {
	if f, is := object.(*types.Func); is && f.Signature().Recv() != nil {
		return !types.IsInterface(f.Signature().Recv().Type())
	}
	return object.Parent() == object.Pkg().Scope()
}

// knots returns the sets of more than one file that all reach each other, also by way of others, the largest first.
func (f files) knots() [][]string {
	reached := map[string]map[string]bool{}
	for file := range f {
		reached[file] = map[string]bool{}
		f.reach(file, reached[file])
	}
	var knots [][]string
	for file := range f {
		knot := []string{file}
		for other := range reached[file] {
			if other != file && reached[other][file] {
				knot = append(knot, other)
			}
		}
		slices.Sort(knot)
		if len(knot) > 1 && knot[0] == file { // The others would find the same one.
			knots = append(knots, knot)
		}
	}
	slices.SortFunc(knots, func(a, b []string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return slices.Compare(a, b)
	})
	return knots
}

// reach adds the files that a file names, and those that these reach.
func (f files) reach(from string, seen map[string]bool) {
	for to := range f[from] {
		if !seen[to] {
			seen[to] = true
			f.reach(to, seen)
		}
	}
}

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
		f := filesOf(p)
		knots := f.knots()
		if len(knots) == 0 {
			continue
		}
		t.Logf("%s: %d of %d files: %s", below(p.PkgPath), len(knots[0]), len(f), strings.Join(knots[0], " "))
		if len(knots[0]) > maxKnot {
			t.Errorf("%s: %d files all reach each other, and %d may: move the types that they share into a file that needs none "+
				"of the others: %v", below(p.PkgPath), len(knots[0]), maxKnot, knots[0])
		}
	}
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
		files files
		want  string
	}{
		"one direction":       {files{"act": names("facts"), "pass": names("act", "facts"), "facts": nil}, "[]"},
		"two files":           {files{"a": names("b"), "b": names("a"), "c": names("a")}, "[[a b]]"},
		"a circle by a third": {files{"a": names("b"), "b": names("c"), "c": names("a"), "d": nil}, "[[a b c]]"},
		"the largest first": {
			files{"a": names("b"), "b": names("a"), "c": names("d"), "d": names("e"), "e": names("c")}, "[[c d e] [a b]]",
		},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, fmt.Sprint(c.files.knots())) })
	}
}
