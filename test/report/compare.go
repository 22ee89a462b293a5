package report

import "fmt"

// Range is the least and the greatest of a ratio in several runs.
type Range struct {
	Name        string
	Least, Most float64
	// Runs is in how many runs it was measured.
	Runs int
}

// String is a range as people read it.
func (r Range) String() string {
	if r.Runs == 1 {
		return fmt.Sprintf("%.2fx", r.Least)
	}
	return fmt.Sprintf("%.2f to %.2fx", r.Least, r.Most)
}

// Ranges returns the ratios of a result, in the order of its first run.
func (r Result) Ranges() []Range {
	var all []Range
	at := map[string]int{}
	for _, table := range r.Tables {
		for _, row := range table {
			n, is := Ratio(row.Value)
			if !is {
				continue
			}
			i, known := at[row.Name]
			if !known {
				i = len(all)
				at[row.Name], all = i, append(all, Range{Name: row.Name, Least: n, Most: n})
			}
			all[i].Least, all[i].Most = min(all[i].Least, n), max(all[i].Most, n)
			all[i].Runs++
		}
	}
	return all
}

// Change says what became of a ratio: it is worse or better only where the ranges of the two reports do not overlap.
func Change(was, is Range) string {
	switch {
	case is.Least > was.Most:
		return "worse"
	case is.Most < was.Least:
		return "better"
	}
	return "within the noise"
}
