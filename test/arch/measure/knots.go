package measure

import (
	"fmt"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Files maps each file of a package to the other files of it whose functions, methods, types, constants or variables it
// names. Fields do not count: they come with their type.
type Files map[string]map[string]bool

// FilesOf returns the files of a package, by their names. It needs the syntax and the types of the package.
func FilesOf(p *packages.Package) Files {
	of := func(pos token.Pos) string { return filepath.Base(p.Fset.Position(pos).Filename) }
	all := Files{}
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

// Knots returns the sets of more than one file that all reach each other, also by way of others, the largest first.
func (f Files) Knots() [][]string {
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

// Within prints which files of a knot each of its files names, a line each: one of these lines has to go.
func (f Files) Within(knot []string) string {
	var text strings.Builder
	for _, file := range knot {
		fmt.Fprintf(&text, "  %s ->", file)
		for _, other := range knot {
			if f[file][other] {
				fmt.Fprintf(&text, " %s", other)
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}

// reach adds the files that a file names, and those that these reach.
func (f Files) reach(from string, seen map[string]bool) {
	for to := range f[from] {
		if !seen[to] {
			seen[to] = true
			f.reach(to, seen)
		}
	}
}
