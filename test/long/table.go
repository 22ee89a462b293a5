package long

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// columns are the figures of the table, with how one is written.
func columns() []struct {
	figure fleet.Figure
	unit   float64
	format string
} {
	return []struct {
		figure fleet.Figure
		unit   float64
		format string
	}{
		{fleet.Memory, mebibyte, "%.1f"}, {fleet.Goroutines, 1, "%.0f"}, {fleet.OpenFiles, 1, "%.0f"},
		{fleet.Watches, 1, "%.0f"}, {fleet.Stored, mebibyte, "%.1f"},
	}
}

// Write prints what the children said, and each life with its figures in its first and its last quarter.
func Write(out io.Writer, outcomes []Outcome) error {
	for _, one := range outcomes {
		ended := one.Failed
		if ended == "" {
			ended = "well"
		}
		fmt.Fprintf(out, "%s: %s: %s after %s\n", one.Name, one.Command, ended, one.Took.Round(time.Second))
		for _, line := range one.Table {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "first and last quarter\tlife\tmemory, MiB\tgoroutines\tfiles\twatches\tstored, MiB\t")
	for _, one := range outcomes {
		for _, life := range one.Lives {
			writeLife(table, one.Name, life)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "grown  %d\n", len(grown(outcomes)))
	return nil
}

// writeLife writes the row of a life.
func writeLife(out io.Writer, child string, life Life) {
	name := child + ": " + life.Program
	if life.Short > 0 {
		name += fmt.Sprintf(" (%d short)", life.Short)
	}
	cells := []string{name, life.Lasted.Round(time.Second).String()}
	for _, column := range columns() {
		trend, known := life.Trends[column.figure]
		if !known {
			cells = append(cells, "")
			continue
		}
		cell := fmt.Sprintf(column.format+" "+column.format, trend.First/column.unit, trend.Last/column.unit)
		if trend.Grown {
			cell += " GREW"
		}
		cells = append(cells, cell)
	}
	fmt.Fprintln(out, strings.Join(cells, "\t")+"\t")
}

// grown lists what is not flat.
func grown(outcomes []Outcome) []string {
	var all []string
	for _, one := range outcomes {
		for _, life := range one.Lives {
			for _, column := range columns() {
				if trend := life.Trends[column.figure]; trend.Grown {
					all = append(all, fmt.Sprintf("%s: %s (%d): %s grew from %.0f to %.0f", one.Name, life.Program, life.PID,
						column.figure, trend.First, trend.Last))
				}
			}
		}
	}
	return all
}

// Check returns what must not be: children that failed, figures that grew, and a child of which no life was judged.
func Check(outcomes []Outcome) error {
	var wrong []error
	for _, one := range outcomes {
		if one.Failed != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s", one.Name, one.Failed))
			continue
		}
		judged := false
		for _, life := range one.Lives {
			judged = judged || len(life.Trends) > 0
		}
		if !judged {
			wrong = append(wrong, errors.New(one.Name+": no program lived long enough to be judged"))
		}
	}
	for _, what := range grown(outcomes) {
		wrong = append(wrong, errors.New(what))
	}
	return errors.Join(wrong...)
}
