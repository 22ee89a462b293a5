package show

import (
	"fmt"
	"strings"
	"unicode/utf8"
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
}

// gap is between two columns.
const gap = 2

// Table writes a table. Cells are texts of objects.
func (t Terminal) Table(table Table) error {
	widths := make([]int, len(table.Headings))
	rows := append([][]string{table.Headings}, t.cells(table)...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(widths) - 1
	left := t.Width
	for _, width := range widths[:last] {
		left -= width + gap
	}
	widths[last] = max(left, leastWidth/3)
	for n, row := range rows {
		for i, line := range lines(row[last], widths[last], max(table.Lines, 1)) {
			cells := row[:last]
			if i > 0 {
				cells = make([]string, last)
				if n <= len(table.Below) {
					cells[0] = table.Below[n-1]
				}
			}
			text := strings.TrimRight(columns(cells, widths)+line, " ")
			if n == 0 {
				text = t.paint(strong, text)
			}
			if _, err := fmt.Fprintln(t.Out, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// columns writes cells in columns of the widths.
func columns(cells []string, widths []int) string {
	var line strings.Builder
	for i, cell := range cells {
		line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
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

// cells returns the cells of a table as they are shown.
func (t Terminal) cells(table Table) [][]string {
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
