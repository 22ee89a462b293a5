package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
)

// Group are problems of one add-on with one code and one message on several clusters, or one problem of anything else.
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

// Groups puts problems of one add-on with one code together, the largest group of a kind first. Problems that others
// explain are left out.
func Groups(problems []Problem) []Group {
	type key struct {
		name string
		code causes.Code
	}
	at := map[key]int{}
	var groups []Group
	for _, p := range problems {
		if p.Behind {
			continue
		}
		k := key{p.Name, p.Code}
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

// Node is one row of a tree.
type Node struct {
	Name string `json:"name"`
	// Ready is how many are well, of how many.
	Ready    string      `json:"ready,omitempty"`
	Since    *time.Time  `json:"since,omitempty"`
	Code     causes.Code `json:"code,omitempty"`
	Message  string      `json:"message,omitempty"`
	Children []Node      `json:"children,omitempty"`
}

// Tree returns the tree of a fleet: its add-ons, with their problems grouped, and the clusters that have problems of
// their own. all adds the clusters without any.
func Tree(f Fleet, hub string, all bool) Node {
	problems := Problems(f)
	groups := Groups(problems)
	bad := map[string]bool{}
	for _, p := range problems {
		if p.Kind == KindCluster {
			bad[p.Name] = true
		}
	}
	well := 0
	for i := range f.Clusters {
		if !bad[f.Clusters[i].Metadata.Name] {
			well++
		}
	}
	root := Node{
		Name: fmt.Sprintf("%s (%d clusters)", hub, len(f.Clusters)), Ready: share(well, len(f.Clusters)),
	}
	for _, name := range addOnNames(f) {
		root.Children = append(root.Children, addOnNode(f, name, groups))
	}
	for _, g := range groups {
		if g.First.Kind == KindCluster {
			root.Children = append(root.Children, leaf(g))
		}
	}
	if all {
		for i := range f.Clusters {
			if name := f.Clusters[i].Metadata.Name; !bad[name] {
				root.Children = append(root.Children, Node{Name: "cluster/" + name, Ready: share(1, 1)})
			}
		}
	}
	return root
}

// addOnNames are the names of all add-ons, by the alphabet.
func addOnNames(f Fleet) []string {
	known := map[string]bool{}
	for i := range f.Definitions {
		known[f.Definitions[i].Metadata.Name] = true
	}
	for i := range f.AddOns {
		known[f.AddOns[i].Metadata.Name] = true
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// addOnNode is the row of an add-on with its problems.
func addOnNode(f Fleet, name string, groups []Group) Node {
	n := Node{Name: "addon/" + name}
	count, well := 0, 0
	for i := range f.AddOns {
		a := &f.AddOns[i]
		if a.Metadata.Name != name {
			continue
		}
		count++
		if c := meta.FindStatusCondition(a.Status.Conditions, "Available"); c != nil && c.Status == metav1.ConditionTrue {
			well++
		}
	}
	n.Ready = share(well, count)
	for i := range f.Definitions {
		if d := &f.Definitions[i]; d.Metadata.Name == name {
			n.Message = progressOf(d)
		}
	}
	for _, g := range groups {
		if g.First.Kind == KindAddOn && g.First.Name == name {
			row := leaf(g)
			row.Name = strconv.Itoa(g.Count) + " clusters, first " + g.First.Namespace
			if g.Count == 1 {
				row.Name = g.First.Namespace
			}
			n.Children = append(n.Children, row)
		}
	}
	return n
}

// progressOf returns what the first rollout of an add-on that is not complete says.
func progressOf(d *fleet.Definition) string {
	for _, progress := range d.Status.InstallProgressions {
		c := meta.FindStatusCondition(progress.Conditions, "Progressing")
		if c != nil && c.Reason != "Completed" {
			return c.Message
		}
	}
	return ""
}

// leaf is the row of a group.
func leaf(g Group) Node {
	p := g.First
	text := p.Title
	if p.Message != "" {
		text += ": " + p.Message
	}
	return Node{Name: p.Kind + "/" + p.Name, Since: p.Since, Code: p.Code, Message: text}
}

// share writes how many of all are well.
func share(well, all int) string { return fmt.Sprintf("%d/%d", well, all) }
