package show

import (
	"fmt"
	"strings"
)

// Table writes rows under headings. The last column takes what is left of a line, and is cut after its last line.
type Table struct {
	Headings []string
	Rows     [][]string
	// Branches stand before the first cell of each row, as they are; nil for none.
	Branches []string
	// Below stand there in the further lines of a row.
	Below []string
	// Lines is how many lines the last column of a row may take; zero means one.
	Lines int
	// Quotes reports that the last column has texts of objects, of which each line stands behind a mark.
	Quotes bool
}

// gap is between two columns.
const gap = 2

// Table writes a table. Cells are texts of objects.
func (t Terminal) Table(table Table) error {
	widths := make([]int, len(table.Headings))
	rows := append([][]string{table.Headings}, t.rows(table)...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], cells(cell))
		}
	}
	last := len(widths) - 1
	left := t.Width
	for _, width := range widths[:last] {
		left -= width + gap
	}
	stacked := left < leastLast
	if stacked { // In a narrow terminal the last column is below the others.
		left = t.Width - stackedAt
	}
	mark := ""
	if table.Quotes {
		mark, left = t.mark(), left-markWidth
	}
	for n, row := range rows {
		said := lines(row[last], left, max(table.Lines, 1))
		if stacked && (n == 0 || row[last] == "") {
			said = nil
		}
		first := columns(row[:last], widths)
		if !stacked && len(said) > 0 {
			if n > 0 && said[0] != "" {
				first += mark
			}
			first, said = first+said[0], said[1:]
		}
		text := strings.TrimRight(first, " ")
		if n == 0 {
			text = t.paint(strong, text)
		}
		for _, line := range said {
			text += "\n" + table.further(n-1, widths, stacked) + mark + line
		}
		if _, err := fmt.Fprintln(t.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// further returns what stands before a further line of a row.
func (table Table) further(row int, widths []int, stacked bool) string {
	parts, below := make([]string, len(widths)-1), ""
	if row < len(table.Below) {
		below = table.Below[row]
	}
	if stacked {
		return below + strings.Repeat(" ", max(stackedAt-cells(below), gap))
	}
	parts[0] = below
	return columns(parts, widths)
}

const (
	// leastLast is the least width of the last column beside the others.
	leastLast = 30
	// stackedAt is where it begins below them.
	stackedAt = 8
)

// columns writes cells in columns of the widths.
func columns(parts []string, widths []int) string {
	var line strings.Builder
	for i, cell := range parts {
		line.WriteString(cell + strings.Repeat(" ", max(widths[i]-cells(cell), 0)+gap))
	}
	return line.String()
}

// lines breaks a text into so many lines of a width at most; the last one is cut.
func lines(text string, width, most int) []string {
	all := Wrap(text, width)
	if len(all) <= 1 || most == 1 {
		return []string{Fit(text, width)}
	}
	if len(all) > most {
		all = append(all[:most-1], Fit(strings.Join(all[most-1:], " "), width))
	}
	return all
}

// rows returns the cells of a table as they are shown.
func (t Terminal) rows(table Table) [][]string {
	rows := make([][]string, 0, len(table.Rows))
	for n, row := range table.Rows {
		shown := make([]string, 0, len(row))
		for i, cell := range row {
			cell = t.text(cell)
			if i == 0 && n < len(table.Branches) {
				cell = table.Branches[n] + cell
			}
			if i < len(row)-1 {
				cell = Fit(cell, maxCell)
			}
			shown = append(shown, cell)
		}
		rows = append(rows, shown)
	}
	return rows
}

// maxCell is the width of a cell that is not the last one, at most.
const maxCell = 64
