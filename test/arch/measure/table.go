package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// shipped are the patterns of all that is shipped.
var shipped = []string{
	"./cmd/...", "./agent/...", "./csr/...", "./hub/...", "./internal/...", "./lease/...", "./manifests/...",
}

// Run prints the tables of the packages that match some patterns, of all that is shipped where there are none. It is to
// be called in the root of the module.
func Run(ctx context.Context, to io.Writer, patterns []string) error {
	if len(patterns) == 0 {
		patterns = shipped
	}
	all, err := Load(ctx, ".", patterns...)
	if err != nil {
		return err
	}
	return Print(to, all)
}

// Print prints a table of packages, the largest first, and one of all together.
func Print(to io.Writer, all []Package) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tfiles\tlines\tof tests\texported\tknot")
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Package) int { return b.Lines - a.Lines })
	for _, p := range sorted {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", p.Path, p.Files, p.Lines, p.TestLines, p.Exported, p.Knot)
	}
	fmt.Fprintln(w)
	for _, row := range Sum(all) {
		fmt.Fprintf(w, "%s\t%s\n", row.Name, row.Value)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing what was counted: %w", err)
	}
	return nil
}

// Row is a figure of all packages together.
type Row struct{ Name, Value string }

// Sum returns the figures of packages together.
func Sum(all []Package) []Row {
	var functions []Function
	var files, lines, tests, undocumented int
	counts := map[string]int{}
	largest := Package{}
	for _, p := range all {
		files, lines, tests = files+p.Files, lines+p.Lines, tests+p.TestLines
		functions = append(functions, p.Functions...)
		if !p.HasDoc {
			undocumented++
		}
		if p.Knot > largest.Knot {
			largest = p
		}
		for name, n := range p.Counts {
			counts[name] += n
		}
	}
	rows := []Row{
		{"packages, files, lines, lines of tests", fmt.Sprintf("%d, %d, %d, %d", len(all), files, lines, tests)},
		{"packages without a comment", fmt.Sprint(undocumented)},
		{"largest knot", fmt.Sprintf("%d files, %s", largest.Knot, largest.Path)},
	}
	rows = append(rows, ofFunctions(functions)...)
	for _, habit := range Habits {
		rows = append(rows, Row{habit.Name, fmt.Sprint(counts[habit.Name])})
	}
	return rows
}

// ofFunctions returns the figures of functions.
func ofFunctions(functions []Function) []Row {
	if len(functions) == 0 {
		return nil
	}
	slices.SortFunc(functions, func(a, b Function) int {
		return cmp.Or(a.Lines-b.Lines, strings.Compare(a.Place, b.Place))
	})
	n := len(functions)
	rows := []Row{
		{"functions", fmt.Sprint(n)},
		{"lines of a function: median, p95, most", fmt.Sprintf("%d, %d, %s", functions[n/2].Lines,
			functions[n*95/100].Lines, named(functions[n-1]))},
	}
	most := func(such func(Function) bool, by func(Function) int) string {
		found := Function{}
		for _, f := range functions {
			if such(f) && (found.Name == "" || by(f) > by(found)) {
				found = f
			}
		}
		if found.Name == "" {
			return "none"
		}
		return fmt.Sprintf("%d, %s %s", by(found), found.Name, found.Place)
	}
	lines := func(f Function) int { return f.Lines }
	called := func(name string) func(Function) bool { return func(f Function) bool { return f.Name == name } }
	return append(rows,
		Row{"longest main", most(called("main"), lines)}, Row{"longest Reconcile", most(called("Reconcile"), lines)},
		Row{"most parameters of a constructor", most(func(f Function) bool { return strings.HasPrefix(f.Name, "New") },
			func(f Function) int { return f.Parameters })},
	)
}

func named(f Function) string { return fmt.Sprintf("%d (%s %s)", f.Lines, f.Name, f.Place) }
