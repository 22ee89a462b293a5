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

// Write prints what the children said, and the medians of the first and the last quarter of each life that counts.
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
	fmt.Fprintln(table, "first and last quarter, medians\tlife\tmemory, MiB\tgoroutines\tfiles\twatches\tstored, MiB\t")
	for _, one := range outcomes {
		short := map[string]int{}
		var order []string
		for i, life := range one.Lives {
			if life.Counts {
				writeLife(table, one.Name, life)
				continue
			}
			if short[life.Program]++; short[life.Program] == 1 {
				order = append(order, one.Lives[i].Program)
			}
		}
		for _, program := range order {
			fmt.Fprintf(table, "%s: %s\t%d too short\t\t\t\t\t\t\n", one.Name, program, short[program])
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
	cells := []string{child + ": " + life.Program, life.Lasted.Round(time.Second).String()}
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
			judged = judged || life.Counts
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
