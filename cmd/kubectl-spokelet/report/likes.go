package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/internal/causes"
)

// Likes are clusters that are alike: the same is wrong with them, or nothing is.
type Likes struct {
	// Problem is that of the first cluster itself; nil for none. Of an add-on there it is what is wrong with the add-on.
	Problem *Problem
	// AddOns are the problems of add-ons of the first cluster that the cluster does not explain.
	AddOns []Problem
	// Clusters are their names, by the alphabet.
	Clusters []string
}

// Well reports that nothing is wrong with the clusters and their add-ons.
func (l Likes) Well() bool { return l.Problem == nil && len(l.AddOns) == 0 }

// Alikes puts clusters together that are alike: those with problems of their own first, then those with add-ons that
// have problems, then those that are well; the largest group first.
func Alikes(f Fleet, problems []Problem) []Likes {
	own, of := map[string]*Problem{}, map[string][]Problem{}
	for i := range problems {
		switch p := &problems[i]; {
		case p.Kind == KindCluster:
			own[p.Name] = p
		case p.Kind == KindAddOn && !p.Behind:
			of[p.Namespace] = append(of[p.Namespace], *p)
		}
	}
	at := map[string]int{}
	var all []Likes
	for i := range f.Clusters {
		name := f.Clusters[i].Metadata.Name
		key := kindOf(own[name], of[name])
		n, known := at[key]
		if !known {
			n = len(all)
			at[key] = n
			all = append(all, Likes{Problem: own[name], AddOns: of[name]})
		}
		all[n].Clusters = append(all[n].Clusters, name)
	}
	for i := range all {
		slices.Sort(all[i].Clusters)
	}
	slices.SortStableFunc(all, func(a, b Likes) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(len(b.Clusters), len(a.Clusters)),
			cmp.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return all
}

// rank is the place of a group among others.
func (l Likes) rank() int {
	switch {
	case l.Problem != nil:
		return 0
	case len(l.AddOns) > 0:
		return 1
	}
	return 2
}

// kindOf is equal for clusters that are alike.
func kindOf(own *Problem, addOns []Problem) string {
	var key strings.Builder
	write := func(p *Problem) {
		t := p.trouble()
		key.WriteString(p.Kind + "\x00" + string(t.code) + "\x00" + t.said + "\x00")
	}
	if own != nil {
		write(own)
	}
	for i := range addOns {
		key.WriteString(addOns[i].Name + "\x00")
		write(&addOns[i])
	}
	return key.String()
}

// Wrong counts what is wrong with a fleet, and what is not as it should be.
func Wrong(groups []Group, findings []Finding) (problems, warnings int) {
	problems = len(groups)
	for _, finding := range findings {
		switch finding.State {
		case Failed:
			problems++
		case Warning:
			warnings++
		case OK, Waiting:
		}
	}
	return problems, warnings
}

// Coded are all problems of one code.
type Coded struct {
	Code  causes.Code
	Title string
	// Count is how many objects have it.
	Count  int
	Groups []Group
	// Findings are those of the hub itself.
	Findings []Finding
}

// ByCode puts problems of a fleet together by their codes, the least code first.
func ByCode(groups []Group, findings []Finding) []Coded {
	found := map[causes.Code]*Coded{}
	of := func(code causes.Code) *Coded {
		if found[code] == nil {
			found[code] = &Coded{Code: code, Title: causes.Titles()[code]}
		}
		return found[code]
	}
	for _, finding := range findings {
		if finding.Code != "" {
			c := of(finding.Code)
			c.Count++
			c.Findings = append(c.Findings, finding)
		}
	}
	for _, group := range groups {
		c := of(group.First.Code)
		c.Count += group.Count
		c.Groups = append(c.Groups, group)
	}
	all := make([]Coded, 0, len(found))
	for _, one := range found {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Coded) int { return cmp.Compare(a.Code, b.Code) })
	return all
}
