package picture

import (
	"fmt"
	"slices"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/dashboards"
)

// cells are the values of a table: a row for each set of labels, a column for each query.
type cells struct {
	labels []string
	rows   [][]string
	values []map[int]float64
}

// join joins the answers of queries by their labels, in the order in which they come.
func join(got answers) cells {
	var t cells
	at := map[string]int{}
	for column, series := range got {
		for _, s := range series {
			if t.labels == nil {
				t.labels = sortedKeys(s)
			}
			var row []string
			for _, name := range t.labels {
				row = append(row, s.Labels[name])
			}
			key := fmt.Sprint(row)
			if _, known := at[key]; !known {
				at[key] = len(t.rows)
				t.rows, t.values = append(t.rows, row), append(t.values, map[int]float64{})
			}
			if value, is := s.Last(); is {
				t.values[at[key]][column] = value
			}
		}
	}
	return t
}

func sortedKeys(s dashboards.Series) []string {
	var names []string
	for name := range s.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// table draws rows and columns.
func (c *canvas) table(p dashboard.Panel, b box, got answers) {
	const lineHeight, size = 24.0, 12.0
	t := join(got)
	numbers := min(125, b.w*0.68/float64(len(got)))
	right := b.x + b.w - numbers*float64(len(got))
	edges := edgesOf(p, t, b.x, right)
	for i, name := range t.labels {
		c.write(text{point{edges[i], b.y + 14}, begin, 11, soft, true}, fieldOf(p, name).name, edges[i+1]-edges[i])
	}
	for i := range got {
		x := right + float64(i+1)*numbers
		c.write(text{point{x - 8, b.y + 14}, end, 11, soft, true}, valueField(p, i, len(got)).name, numbers)
	}
	for r, row := range t.rows {
		y := b.y + 20 + float64(r)*lineHeight
		if y+lineHeight > b.y+b.h+2 {
			return
		}
		c.line([]point{{b.x, y}, {b.x + b.w, y}}, faint, 1, "")
		for i, value := range row {
			shown, _ := fieldOf(p, t.labels[i]).mapped(value)
			c.write(text{point{edges[i], y + 16}, begin, size, ink, false}, shown, edges[i+1]-edges[i]-8)
		}
		for i := range got {
			value, is := t.values[r][i]
			if !is {
				continue
			}
			f, color := valueField(p, i, len(got)), ink
			x := right + float64(i+1)*numbers
			if f.filled {
				fill := f.color(value)
				c.rect(box{x - numbers + 2, y + 1.5, numbers - 2, lineHeight - 3}, fill, "")
				color = on(fill)
			}
			c.write(text{point{x - 8, y + 16}, end, size, color, false}, f.show(value), numbers)
		}
	}
}

// edgesOf are where the columns with labels begin, and where the last one ends: each has room as its texts need it.
func edgesOf(p dashboard.Panel, t cells, left, right float64) []float64 {
	needs, sum := make([]float64, len(t.labels)), 0.0
	for i, name := range t.labels {
		f := fieldOf(p, name)
		needs[i] = wide(f.name, 12) + 16
		for _, row := range t.rows {
			shown, _ := f.mapped(row[i])
			needs[i] = max(needs[i], wide(shown, 12)+16)
		}
		sum += needs[i]
	}
	edges := []float64{left}
	for _, need := range needs {
		left += (right - edges[0]) * need / sum
		edges = append(edges, left)
	}
	return edges
}

// valueField is the field with the values of a query.
func valueField(p dashboard.Panel, i, of int) field {
	if of == 1 {
		return fieldOf(p, "Value")
	}
	return fieldOf(p, "Value #"+p.Targets[i].RefID)
}
