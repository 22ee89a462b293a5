package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// Node is one row of a tree.
type Node struct {
	Name string `json:"name"`
	// Ready is how many are well, of how many.
	Ready string      `json:"ready,omitempty"`
	Since *time.Time  `json:"since,omitempty"`
	Code  causes.Code `json:"code,omitempty"`
	// Message is the title of the code and what the object says.
	Message  string `json:"message,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// Troubled reports whether a node or one below it has a problem.
func (n Node) Troubled() bool { return n.Code != "" || slices.ContainsFunc(n.Children, Node.Troubled) }

// Names are the names of the objects that have a problem, a row of several clusters by that of its add-on. One may be
// there more than once.
func (n Node) Names() []string {
	var all []string
	if n.Code != "" {
		all = append(all, n.Name)
	}
	for _, child := range n.Children {
		below := child.Names()
		if child.Code != "" && !strings.Contains(child.Name, "/") {
			below[0] = n.Name
		}
		all = append(all, below...)
	}
	return all
}

// Tree returns the tree of a fleet: its add-ons, with their problems grouped, and the clusters that have problems of
// their own. all adds the clusters without any, and what is in force on those that are well.
func Tree(f Fleet, hub string, all bool) Node {
	t := grow(f, all)
	root := Node{Name: hub + " (" + Count(len(f.Clusters), "cluster") + ")"}
	for _, name := range addOnNames(f) {
		root.Children = append(root.Children, t.addOn(name))
	}
	bad := map[string]bool{}
	for _, g := range t.groups {
		if g.First.Kind == KindCluster {
			bad[g.First.Name] = true
			root.Children = append(root.Children, row(KindCluster+"/"+g.First.Name, &g.First))
		}
	}
	root.Ready = share(len(f.Clusters)-len(bad), len(f.Clusters))
	if !all {
		return root
	}
	for i := range f.Clusters {
		if name := f.Clusters[i].Metadata.Name; !bad[name] {
			root.Children = append(root.Children, Node{Name: KindCluster + "/" + name, Ready: t.addOnsOn(name)})
		}
	}
	return root
}

// AddOnTree returns the tree of one add-on of a fleet. all adds what is in force on the clusters that are well.
func AddOnTree(f Fleet, name string, all bool) Node { return grow(f, all).addOn(name) }

// ClusterTree returns the tree of one cluster, with its add-ons and works. all adds those that are well.
func ClusterTree(f Fleet, works []fleet.Work, name string, all bool) Node {
	t := grow(f, all)
	root := Node{Name: KindCluster + "/" + name, Ready: t.addOnsOn(name)}
	if p := t.problems[identity{KindCluster, "", name}]; p != nil {
		ready := root.Ready
		root = row(root.Name, p)
		root.Ready = ready
	}
	for i := range f.AddOns {
		a := &f.AddOns[i]
		p := t.problems[identity{KindAddOn, a.Metadata.Namespace, a.Metadata.Name}]
		if a.Metadata.Namespace == name && (all || p == nil || !p.Behind) {
			root.Children = t.add(root.Children, KindAddOn+"/"+a.Metadata.Name, p, inForce(a))
		}
	}
	for i := range works {
		w := &works[i]
		said := Count(len(w.Spec.Workload.Manifests), "manifest")
		root.Children = t.add(root.Children, KindWork+"/"+w.Metadata.Name, OfWork(w), said)
	}
	return root
}

// WorkTree returns the tree of a work with its manifests. all adds those that are applied and available.
func WorkTree(w *fleet.Work, all bool) Node {
	root := row(KindWork+"/"+w.Metadata.Name, OfWork(w))
	well := 0
	for _, m := range w.Status.Resources.Manifests {
		bad := untrue(m.Conditions, ofManifest()...)
		n := Node{Name: message.Object(m.Resource.Kind, m.Resource.Namespace, m.Resource.Name)}
		if bad == nil {
			well++
			n.Message = "applied and available"
		} else {
			n.Message, n.Since = cmp.Or(bad.Message, bad.Reason), fleet.Instant(bad.LastTransitionTime.Time)
		}
		if bad != nil || all {
			root.Children = append(root.Children, n)
		}
	}
	root.Ready = share(well, len(w.Spec.Workload.Manifests))
	return root
}

// Nothing returns the node of an object that does not exist.
func Nothing(kind, name, why string) Node {
	return Node{Name: kind + "/" + name, Code: causes.ObjectMissing, Message: why}
}

// NoCluster returns the node of a cluster that does not exist.
func NoCluster(name string) Node {
	return row(KindCluster+"/"+name, ClusterChain(name, ClusterFacts{}).Problem)
}

// tree is a fleet with what is wrong with it.
type tree struct {
	Fleet

	all    bool
	groups []Group
	// problems are what is wrong, by its object.
	problems map[identity]*Problem
	// wells are how many add-ons of each cluster are available, and counts how many there are.
	wells, counts map[string]int
}

// identity names an object.
type identity struct{ kind, namespace, name string }

// grow judges a fleet.
func grow(f Fleet, all bool) tree {
	problems := Problems(f)
	t := tree{
		Fleet: f, all: all, groups: Groups(problems), problems: map[identity]*Problem{},
		wells: map[string]int{}, counts: map[string]int{},
	}
	for i := range problems {
		p := &problems[i]
		t.problems[identity{p.Kind, p.Namespace, p.Name}] = p
	}
	for i := range f.AddOns {
		a := &f.AddOns[i]
		t.counts[a.Metadata.Namespace]++
		if isAvailable(a) {
			t.wells[a.Metadata.Namespace]++
		}
	}
	return t
}

// isAvailable reports whether an add-on says that it is available.
func isAvailable(a *fleet.AddOn) bool {
	return meta.IsStatusConditionTrue(a.Status.Conditions, "Available")
}

// addOnsOn returns how many add-ons of a cluster are available.
func (t tree) addOnsOn(cluster string) string { return share(t.wells[cluster], t.counts[cluster]) }

// add adds the row of an object to others: one that is well only where all are asked for, with what it says then.
func (t tree) add(to []Node, name string, p *Problem, said string) []Node {
	n := row(name, p)
	if p == nil {
		if !t.all {
			return to
		}
		n.Message = said
	}
	return append(to, n)
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
	return slices.Sorted(maps.Keys(known))
}

// addOn is the row of an add-on with its problems, equal ones of several clusters in one row.
func (t tree) addOn(name string) Node {
	n := Node{Name: KindAddOn + "/" + name}
	wells, all := 0, 0
	said := map[string][]string{} // Names of clusters that are well by what is in force on them.
	for i := range t.AddOns {
		a := &t.AddOns[i]
		if a.Metadata.Name != name {
			continue
		}
		all++
		if isAvailable(a) {
			wells++
		}
		if t.problems[identity{KindAddOn, a.Metadata.Namespace, name}] == nil {
			said[inForce(a)] = append(said[inForce(a)], a.Metadata.Namespace)
		}
	}
	for i := range t.Definitions {
		if d := &t.Definitions[i]; d.Metadata.Name == name {
			n.Message = progressOf(d)
		}
	}
	for _, g := range t.groups {
		switch {
		case g.First.Name != name:
		case g.First.Kind == KindDefinition && n.Code == "":
			n.Code, n.Since = g.First.Code, g.First.Since
		case g.First.Kind == KindAddOn:
			n.Children = append(n.Children, row(together(g.Clusters), &g.First))
		}
	}
	n.Ready = share(wells, all)
	if counts, _, more := strings.Cut(n.Message, countsEnd); more && n.Code == "" && len(n.Children) > 0 {
		n.Message = counts + countsEnd // The rows below tell the rest.
	}
	if t.all {
		for _, text := range slices.Sorted(maps.Keys(said)) {
			clusters := said[text]
			n.Children = append(n.Children, Node{
				Name: together(clusters), Ready: share(len(clusters), len(clusters)), Message: text,
			})
		}
	}
	return n
}

// countsEnd is the end of the counts in what a rollout says, in OCM's words. What comes after it is our hub manager's.
const countsEnd = " timeout."

// inForce returns what is in force of the configurations of an add-on, and where it is hosted.
func inForce(a *fleet.AddOn) string {
	text := configs(a)
	if host := a.Metadata.Annotations[addonv1beta1.HostingClusterNameAnnotationKey]; host != "" {
		text = strings.TrimPrefix(text+", hosted on "+host, ", ")
	}
	return text
}

// progressOf returns what the first rollout of an add-on that is not complete says.
func progressOf(d *fleet.Definition) string {
	for _, progress := range d.Status.InstallProgressions {
		c := meta.FindStatusCondition(progress.Conditions, "Progressing")
		if c != nil && c.Reason != addonv1beta1.ProgressingReasonCompleted {
			return c.Message
		}
	}
	return ""
}

// row is the row of an object with its problem; nil for one that is well.
func row(name string, p *Problem) Node {
	if p == nil {
		return Node{Name: name}
	}
	return Node{Name: name, Since: p.Since, Code: p.Code, Message: strings.TrimSuffix(p.Title+": "+p.Message, ": ")}
}

// together names clusters in one row.
func together(clusters []string) string {
	if len(clusters) == 1 {
		return clusters[0]
	}
	return Count(len(clusters), "cluster") + ", first " + clusters[0]
}

// Count writes a number with what it counts.
func Count(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprintf("%d %s", n, of)
}

// share writes how many of all are well.
func share(well, all int) string { return fmt.Sprintf("%d/%d", well, all) }
