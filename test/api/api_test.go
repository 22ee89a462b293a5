package api

import (
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files of exported declarations again")

// libraries are the folders of the libraries by the names of their files.
func libraries() map[string]string {
	return map[string]string{
		"addon": "hub/addon", "raw": "hub/addon/raw", "helm": "hub/addon/helm", "manager": "hub/addon/manager",
	}
}

func TestExportedDeclarations(t *testing.T) {
	for name, folder := range libraries() {
		t.Run(name, func(t *testing.T) {
			set, files := parse(t, filepath.Join("../..", folder))
			got := declarations(t, set, files, folder)
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got, "the exported declarations changed; if that is meant: go test ./test/api -update")
		})
	}
}

// An author cannot name a type of an internal package, and cannot keep a value of it in a variable.
func TestNoExportedDeclarationHasAnInternalType(t *testing.T) {
	for name, folder := range libraries() {
		t.Run(name, func(t *testing.T) {
			set, files := parse(t, filepath.Join("../..", folder))
			text := declarations(t, set, files, folder)
			for _, file := range files {
				for _, spec := range file.Imports {
					path, err := strconv.Unquote(spec.Path.Value)
					require.NoError(t, err)
					if strings.Contains(path, "/internal/") {
						assert.NotRegexp(t, `\b`+regexp.QuoteMeta(filepath.Base(path))+`\.`, text)
					}
				}
			}
		})
	}
}

// parse reads a package without its tests.
func parse(t *testing.T, folder string) (*token.FileSet, []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	require.NotEmpty(t, files, "there are no files in %s", folder)
	return set, files
}

// declarations returns the exported declarations of a package as text, in the order of the documentation.
func declarations(t *testing.T, set *token.FileSet, files []*ast.File, path string) string {
	t.Helper()
	p, err := doc.NewFromFiles(set, files, path)
	require.NoError(t, err)
	var out strings.Builder
	show := func(node ast.Node) {
		require.NoError(t, (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&out, set, node))
		out.WriteString("\n\n")
	}
	values := func(all []*doc.Value) {
		for _, value := range all {
			show(value.Decl)
		}
	}
	functions := func(all []*doc.Func) {
		for _, function := range all {
			show(function.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, kind := range p.Types {
		show(kind.Decl)
		values(kind.Consts)
		values(kind.Vars)
		functions(kind.Funcs)
		functions(kind.Methods)
	}
	return out.String()
}
