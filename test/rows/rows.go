package rows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// mark starts the comment lines that name behaviours.
	mark = "Shows: "
	// Tables is where the pages with tables are, below the module root.
	Tables = "docs/reference"
	// Security is a page outside of Tables that has such tables, too.
	Security = "docs/security.md"
	// Invariants is another one.
	Invariants = "docs/invariants.md"
	// header is the first line of a table of behaviours.
	header = "| name | behaviour | tests |"
)

// Tests are the tests of each behaviour, as "folder: name", by "page/name" of the behaviour.
type Tests map[string][]string

// Scan finds the comments in all test files below root.
func Scan(root string) (Tests, error) {
	found := Tests{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")) && file != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		return found.scan(file, folder)
	})
	for _, tests := range found {
		slices.Sort(tests)
	}
	return found, err
}

func (t Tests) scan(file, folder string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		for _, id := range shown(function) {
			test := filepath.ToSlash(folder) + ": " + function.Name.Name
			if !slices.Contains(t[id], test) {
				t[id] = append(t[id], test)
			}
		}
	}
	return nil
}

// shown returns the behaviours that the comment of a function names.
func shown(function *ast.FuncDecl) []string {
	var all []string
	if function.Doc != nil {
		for _, comment := range function.Doc.List {
			text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if ids, ok := strings.CutPrefix(text, mark); ok {
				all = append(all, Split(ids)...)
			}
		}
	}
	return all
}

// Split returns the behaviours that a comment names, separated by commas.
func Split(ids string) []string {
	var all []string
	for id := range strings.SplitSeq(ids, ",") {
		if id = strings.TrimSpace(id); id != "" {
			all = append(all, id)
		}
	}
	return all
}

// Row is one line of a table.
type Row struct {
	// ID is "page/name" of the behaviour, Behaviour its sentence, Tests the last column.
	ID, Behaviour, Tests string
}

// Parse returns the rows of all tables of behaviours in a page; every other line is left out.
func Parse(page, text string) []Row {
	var all []Row
	walk(page, text, func(_ int, row Row) { all = append(all, row) })
	return all
}

// walk calls visit for each row of a table of behaviours, with the number of its line.
func walk(page, text string, visit func(int, Row)) {
	inside, number := false, -1
	for line := range strings.SplitSeq(text, "\n") {
		number++
		switch {
		case line == header:
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && strings.HasPrefix(line, "| `"):
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			for len(cells) < 3 {
				cells = append(cells, "")
			}
			name := strings.Trim(strings.TrimSpace(cells[0]), "`")
			visit(number, Row{ID: page + "/" + name, Behaviour: strings.TrimSpace(cells[1]), Tests: strings.TrimSpace(cells[2])})
		}
	}
}

// Column writes the last column for a behaviour.
func (t Tests) Column(row Row) string {
	var tests []string
	for _, test := range t[row.ID] {
		tests = append(tests, "`"+test+"`")
	}
	return strings.Join(tests, "<br>")
}

// Rewrite returns a page with the last column of all rows as it shall be.
func (t Tests) Rewrite(page, text string) string {
	lines := strings.Split(text, "\n")
	walk(page, text, func(number int, row Row) {
		name := strings.TrimPrefix(row.ID, page+"/")
		lines[number] = fmt.Sprintf("| `%s` | %s | %s |", name, row.Behaviour, t.Column(row))
	})
	return strings.Join(lines, "\n")
}

// files returns the paths of all pages with tables.
func files(root string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(root, Tables, "*.md"))
	if err != nil {
		return nil, err
	}
	return append(all, filepath.Join(root, Security), filepath.Join(root, Invariants)), nil
}

// nameOf returns the name of a page: that of its file without folder and ending.
func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".md") }

// Pages returns the text of each page with tables below root, by its name.
func Pages(root string) (map[string]string, error) {
	paths, err := files(root)
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for _, file := range paths {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a page with tables: %w", err)
		}
		pages[nameOf(file)] = string(text)
	}
	return pages, nil
}

// Update rewrites all tables below root.
func Update(root string) error {
	tests, err := Scan(root)
	if err != nil {
		return err
	}
	pages, err := Pages(root)
	if err != nil {
		return err
	}
	paths, err := files(root)
	if err != nil {
		return err
	}
	for _, file := range paths {
		page := nameOf(file)
		if err := os.WriteFile(file, []byte(tests.Rewrite(page, pages[page])), 0o644); err != nil {
			return fmt.Errorf("writing a page with tables: %w", err)
		}
	}
	return nil
}
