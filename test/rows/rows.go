package rows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// mark starts the comment lines that name scenarios, weakness those that name weaknesses of the reference that a test
	// would fail with.
	mark, weakness = "Row: ", "Weakness: "
	// phrase starts an id that is not a file and line but a phrase, which is kept as it is.
	phrase = "work "
	// Tables is where the tables are, below the module root.
	Tables = "docs/scenarios"
)

// Tests are the tests of each scenario, as "folder: name", by the id of the scenario.
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
		if !ok || function.Doc == nil {
			continue
		}
		for _, comment := range function.Doc.List {
			text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			ids, ok := strings.CutPrefix(text, mark)
			if !ok {
				if ids, ok = strings.CutPrefix(text, weakness); !ok {
					continue
				}
			}
			for _, id := range Split(ids) {
				test := filepath.ToSlash(folder) + ": " + function.Name.Name
				if !slices.Contains(t[id], test) {
					t[id] = append(t[id], test)
				}
			}
		}
	}
	return nil
}

// Split returns the ids that a comment names: separated by commas, each without the folder of its file, since the file
// and line tell it apart. What stands in parentheses behind an id is said to people.
func Split(ids string) []string {
	if strings.HasPrefix(ids, phrase) {
		return []string{ids}
	}
	var all []string
	for _, id := range strings.Split(ids, ",") {
		id, _, _ = strings.Cut(id, "(")
		id = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(id), "AF:"))
		if !strings.Contains(id, "*") {
			id = path.Base(id)
		}
		if id != "" && id != "." {
			all = append(all, id)
		}
	}
	return all
}

// Row is one line of a table.
type Row struct {
	// ID is the scenario, Scenario what happens in it, Tests the last column.
	ID, Scenario, Tests string
}

// Parse returns the rows of a table; every line that is none is left out.
func Parse(table string) []Row {
	var all []Row
	for line := range strings.SplitSeq(table, "\n") {
		if row, ok := parseLine(line); ok {
			all = append(all, row)
		}
	}
	return all
}

func parseLine(line string) (Row, bool) {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
		return Row{}, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return Row{ID: strings.Trim(cells[0], "`"), Scenario: cells[1], Tests: cells[2]}, true
}

// Column writes the last column for a scenario. A scenario that is told in another way than by a test keeps what stands
// there, which then starts with a dash.
func (t Tests) Column(row Row) string {
	var tests []string
	for _, id := range Split(row.ID) {
		for _, test := range t[id] {
			if test = "`" + test + "`"; !slices.Contains(tests, test) {
				tests = append(tests, test)
			}
		}
	}
	if len(tests) == 0 && strings.HasPrefix(row.Tests, "-") {
		return row.Tests
	}
	return strings.Join(tests, "<br>")
}

// Rewrite returns a table with the last column of all rows as it shall be.
func (t Tests) Rewrite(table string) string {
	lines := strings.Split(table, "\n")
	for i, line := range lines {
		if row, ok := parseLine(line); ok {
			lines[i] = fmt.Sprintf("| `%s` | %s | %s |", row.ID, row.Scenario, t.Column(row))
		}
	}
	return strings.Join(lines, "\n")
}

// Update rewrites all tables below root.
func Update(root string) error {
	tests, err := Scan(root)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, Tables, "*.md"))
	if err != nil {
		return err
	}
	for _, file := range files {
		table, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(tests.Rewrite(string(table))), 0o644); err != nil {
			return err
		}
	}
	return nil
}
