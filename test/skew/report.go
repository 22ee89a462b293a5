package skew

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report holds what happened on a path.
type Report struct {
	// Path is the path.
	Path Path
	// Steps are the steps of the story that ended, in their order.
	Steps []Step
	// Works are the specs of all works of the add-on at the end, by cluster and name; nil when the end was not reached.
	Works map[string]string
	// Violations are what must not be; none is expected.
	Violations []string
}

// Step is a step of the story.
type Step struct {
	// Name says what happened, and Took how long it took.
	Name string
	Took time.Duration
}

// Write prints reports as one table: a row for each step, a column for each path.
func Write(out io.Writer, reports []Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(Report) string) {
		cells := []string{name}
		for _, r := range reports {
			cells = append(cells, cell(r))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row("", func(r Report) string { return r.Path.Name })
	row("hub manager", func(r Report) string { return r.Path.says(r.Path.Hub) })
	row("agents", func(r Report) string { return r.Path.says(r.Path.Agents) })
	for _, name := range stepNames() {
		row(name, func(r Report) string {
			at := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Name == name })
			if at < 0 {
				return "-"
			}
			return r.Steps[at].Took.Round(time.Second).String()
		})
	}
	row("works at the end", func(r Report) string { return fmt.Sprint(len(r.Works)) })
	row("violations", func(r Report) string { return fmt.Sprint(len(r.Violations)) })
	return table.Flush()
}

// says tells a version of the path, and what replaces it.
func (p Path) says(side Side) string {
	if p.Replaced {
		return side.String() + ", then " + (1 - side).String()
	}
	return side.String()
}

// Check says what in reports must not be.
func Check(reports []Report) error {
	var wrong []error
	for _, r := range reports {
		for _, what := range r.Violations {
			wrong = append(wrong, fmt.Errorf("%s: %s", r.Path.Name, what))
		}
	}
	for _, what := range Differences(reports) {
		wrong = append(wrong, errors.New(what))
	}
	return errors.Join(wrong...)
}
