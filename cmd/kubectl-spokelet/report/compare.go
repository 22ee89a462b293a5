package report

import (
	"cmp"
	"slices"
	"strings"
)

// Comparison is what differs between the problems of two fleets, or of one at two times.
type Comparison struct {
	// New are those of the second alone, Gone those of the first alone, and Same those of both, as the second has them.
	New  []Group `json:"new,omitempty"`
	Gone []Group `json:"gone,omitempty"`
	Same []Group `json:"same,omitempty"`
}

// Compare compares the problems of two fleets. Problems are the same where their code and what has them are, also where
// their messages differ.
func Compare(before, after []Problem) Comparison {
	had, has := map[string]bool{}, map[string]bool{}
	for _, p := range before {
		had[p.identity()] = true
	}
	for _, p := range after {
		has[p.identity()] = true
	}
	only := func(all []Problem, in map[string]bool, want bool) []Group {
		groups := Groups(slices.DeleteFunc(slices.Clone(all), func(p Problem) bool { return in[p.identity()] != want }))
		slices.SortStableFunc(groups, func(a, b Group) int {
			return cmp.Or(strings.Compare(string(a.First.Code), string(b.First.Code)), strings.Compare(a.Name(), b.Name()))
		})
		return groups
	}
	return Comparison{New: only(after, had, false), Gone: only(before, has, false), Same: only(after, had, true)}
}

// identity names a problem.
func (p Problem) identity() string {
	return string(p.Code) + " " + p.Kind + " " + p.Namespace + "/" + p.Name
}
