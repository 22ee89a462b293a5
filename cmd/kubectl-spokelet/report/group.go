package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Group are problems of one kind of one add-on on several clusters, or one problem of anything else.
type Group struct {
	// First is the problem of the first cluster by name, and Count how many there are.
	First Problem `json:"first"`
	Count int     `json:"count"`
	// Clusters are the names of the clusters of an add-on.
	Clusters []string `json:"clusters,omitempty"`
}

// Name names what has the problems.
func (g Group) Name() string {
	switch {
	case g.First.Kind != KindAddOn:
		return g.First.Kind + "/" + g.First.Name
	case g.Count == 1:
		return fmt.Sprintf("addon/%s on %s", g.First.Name, g.First.Namespace)
	}
	return fmt.Sprintf("addon/%s on %d clusters, first %s", g.First.Name, g.Count, g.First.Namespace)
}

// Groups puts problems of one kind of one add-on together, the largest group first. Problems that others explain are
// left out.
func Groups(problems []Problem) []Group {
	type key struct {
		name string
		kind trouble
	}
	at := map[key]int{}
	var groups []Group
	for _, p := range problems {
		if p.Behind {
			continue
		}
		k := key{p.Name, p.trouble()}
		if i, found := at[k]; found && p.Kind == KindAddOn {
			groups[i].Count++
			groups[i].Clusters = append(groups[i].Clusters, p.Namespace)
			continue
		}
		g := Group{First: p, Count: 1}
		if p.Kind == KindAddOn {
			at[k] = len(groups)
			g.Clusters = []string{p.Namespace}
		}
		groups = append(groups, g)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(order(a.First.Kind), order(b.First.Kind)), cmp.Compare(b.Count, a.Count))
	})
	return groups
}
