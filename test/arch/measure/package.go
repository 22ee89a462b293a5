package measure

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Package holds what is counted of one package, its tests apart.
type Package struct {
	// Path is that below the root of the module.
	Path string
	// Files, Lines and TestLines are counted with comments and empty lines; Exported are the names at the top of the
	// package that others may use.
	Files, Lines, TestLines, Exported int
	// Knot is how many files all reach each other, 1 where none do.
	Knot int
	// HasDoc reports whether there is a package comment.
	HasDoc bool
	// Functions are all functions and methods, the longest first.
	Functions []Function
	// Counts is how often the source has something, by the names in Habits.
	Counts map[string]int
}

// Function is a function or method.
type Function struct {
	// Place is its file and line below the root of the module.
	Place string
	Name  string
	// Lines is from the keyword to the closing brace, and Parameters how many it takes.
	Lines, Parameters int
}

// Load counts the packages of the module in a folder that match patterns of the go command. The error is one of loading
// or type-checking.
func Load(ctx context.Context, dir string, patterns ...string) ([]Package, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedModule,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading %v: %w", patterns, err)
	}
	var all []Package
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("loading %s: %w", p.PkgPath, p.Errors[0])
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		one, err := of(p)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func of(p *packages.Package) (Package, error) {
	one := Package{
		Path: strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/"), Files: len(p.GoFiles), Knot: 1,
		Counts: map[string]int{},
	}
	for _, file := range p.GoFiles {
		lines, err := linesOf(file)
		if err != nil {
			return Package{}, err
		}
		one.Lines += lines
	}
	tests, err := filepath.Glob(filepath.Join(filepath.Dir(p.GoFiles[0]), "*_test.go"))
	if err != nil {
		return Package{}, fmt.Errorf("looking for the tests of %s: %w", p.PkgPath, err)
	}
	for _, file := range tests {
		lines, err := linesOf(file)
		if err != nil {
			return Package{}, err
		}
		one.TestLines += lines
	}
	for _, name := range p.Types.Scope().Names() {
		if token.IsExported(name) {
			one.Exported++
		}
	}
	if knots := FilesOf(p).Knots(); len(knots) > 0 {
		one.Knot = len(knots[0])
	}
	for _, file := range p.Syntax {
		one.look(p.Fset, file, p.Module.Dir)
	}
	slices.SortFunc(one.Functions, func(a, b Function) int { return b.Lines - a.Lines })
	return one, nil
}

// look counts the functions and habits of a file.
func (p *Package) look(set *token.FileSet, file *ast.File, root string) {
	p.HasDoc = p.HasDoc || file.Doc != nil
	for _, habit := range Habits {
		p.Counts[habit.Name] += habit.count(file)
	}
	for _, declared := range file.Decls {
		function, is := declared.(*ast.FuncDecl)
		if !is || function.Body == nil {
			continue
		}
		from, to := set.Position(function.Pos()), set.Position(function.End())
		place, err := filepath.Rel(root, from.Filename)
		if err != nil {
			place = from.Filename
		}
		p.Functions = append(p.Functions, Function{
			Place: fmt.Sprintf("%s:%d", place, from.Line), Name: function.Name.Name, Lines: to.Line - from.Line + 1,
			Parameters: function.Type.Params.NumFields(),
		})
	}
}

func linesOf(file string) (int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("counting lines: %w", err)
	}
	return bytes.Count(content, []byte("\n")), nil
}
