package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Figure is one measurement.
type Figure struct {
	// Name names what was measured. Value is the result and Budget its limit, both as text; no budget is empty.
	Name   string `json:"name"`
	Value  string `json:"value"`
	Budget string `json:"budget,omitempty"`
	// Held reports whether the budget holds; true without one.
	Held bool `json:"held"`
}

// Table collects figures in the order of their measurement.
type Table struct {
	// Log receives each figure as soon as it is known.
	Log io.Writer
	// Figures are the figures so far.
	Figures []Figure
}

// Note adds a figure; held is whether the budget holds.
func (t *Table) Note(name, value, budget string, held bool) {
	t.Figures = append(t.Figures, Figure{Name: name, Value: value, Budget: budget, Held: held})
	fmt.Fprintf(t.Log, "  %s: %s (budget %s)\n", name, value, budget)
}

// Time adds a figure that is a time; a budget of zero is none.
func (t *Table) Time(name string, value, budget time.Duration) {
	rounded := value.Round(time.Millisecond).String()
	if budget == 0 {
		t.Note(name, rounded, "", true)
		return
	}
	t.Note(name, rounded, budget.String(), value <= budget)
}

// Number adds a figure with a unit, printed with a number of decimals; a budget of zero is none.
func (t *Table) Number(name string, value float64, decimals int, unit string, budget float64) {
	text := fmt.Sprintf("%.*f%s", decimals, value, unit)
	if budget == 0 {
		t.Note(name, text, "", true)
		return
	}
	t.Note(name, text, fmt.Sprintf("%g%s", budget, unit), value <= budget)
}

// Percentile returns the value below which a share of the times is, between 0 and 1; it sorts them. Without any it is
// zero.
func Percentile(took []time.Duration, share float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(int(share*float64(len(took))), len(took)-1)]
}

// Write prints the table. A budget that is missed is marked, and no error: the machine may be to blame.
func Write(out io.Writer, figures []Figure) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tmeasured\tbudget\t")
	for _, f := range figures {
		mark := ""
		if !f.Held {
			mark = "missed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Name, f.Value, f.Budget, mark)
	}
	return table.Flush()
}

// Save writes the figures to a file as JSON; an empty name saves nothing.
func Save(file string, figures []Figure) error {
	if file == "" {
		return nil
	}
	raw, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	return os.WriteFile(file, append(raw, '\n'), 0o600)
}
