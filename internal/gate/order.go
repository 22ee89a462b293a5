package gate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
)

// maxInCycle is how many names of a cycle are told: a condition refuses a text that is too long.
const maxInCycle = 10

// Order says which add-ons come before which, by the policies of a hub. The zero value orders nothing.
type Order struct {
	// of are the dependencies by add-on, and by the add-ons that depend on one, both in the order of names.
	of map[string][]policies.Dependency
	by map[string][]string
}

// NewOrder returns the order of some policies. One that is being deleted says nothing.
func NewOrder(all []policies.AddOnPolicy) Order {
	var o Order
	for i := range all {
		p := &all[i]
		if len(p.Spec.DependsOn) == 0 || !p.DeletionTimestamp.IsZero() {
			continue
		}
		if o.of == nil {
			o.of, o.by = map[string][]policies.Dependency{}, map[string][]string{}
		}
		o.of[p.Name] = slices.SortedFunc(slices.Values(p.Spec.DependsOn), func(a, b policies.Dependency) int {
			return strings.Compare(a.Name, b.Name)
		})
		for _, d := range p.Spec.DependsOn {
			o.by[d.Name] = append(o.by[d.Name], p.Name)
		}
	}
	for _, names := range o.by {
		slices.Sort(names)
	}
	return o
}

// Above returns the names of the add-ons that depend on one, directly or by others, and its own. A change of what it
// depends on may make a cycle that they are in, or break it up.
func (o Order) Above(addOn string) []string {
	names, seen := []string{addOn}, map[string]bool{addOn: true}
	for at := 0; at < len(names); at++ {
		for _, name := range o.by[names[at]] {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Named returns the names of the add-ons that depend on one, whatever the order says of them.
func (o Order) Named(addOn string) []string { return o.by[addOn] }

// Depends returns the names of the add-ons on which one depends, whatever the order says of them.
func (o Order) Depends(addOn string) (names []string) {
	for _, d := range o.of[addOn] {
		names = append(names, d.Name)
	}
	return names
}

// Dependent is an add-on that depends on another one.
type Dependent struct {
	// Name is that of its ClusterManagementAddOn.
	Name string
	// Optional reports whether it does without the other one.
	Optional bool
	// Installs reports whether it brings the other one along.
	Installs bool
}

// Dependents returns the add-ons that depend on one, by name, without those on which it depends, too.
func (o Order) Dependents(addOn string) (all []Dependent) {
	for _, name := range o.by[addOn] {
		if o.reaches(addOn, name) {
			continue
		}
		d := o.edge(name, addOn)
		all = append(all, Dependent{
			Name: name, Optional: d.Type == policies.DependencyOptional, Installs: d.Install,
		})
	}
	return all
}

func (o Order) edge(from, to string) policies.Dependency {
	at := slices.IndexFunc(o.of[from], func(d policies.Dependency) bool { return d.Name == to })
	return o.of[from][at]
}

func (o Order) reaches(from, to string) bool { return o.way(from, to) != nil }

// way returns a shortest way of dependencies from an add-on to another one, with both; nil where there is none.
func (o Order) way(from, to string) []string {
	came := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == to {
			way := []string{to}
			for at := to; at != from; at = came[at] {
				way = append(way, came[at])
			}
			slices.Reverse(way)
			return way
		}
		for _, d := range o.of[next[0]] {
			if _, seen := came[d.Name]; !seen {
				came[d.Name] = next[0]
				next = append(next, d.Name)
			}
		}
	}
	return nil
}

// Cycle returns a shortest cycle of dependencies that an add-on is in, as "a > b > a" from the first name on; empty
// where it is in none.
func (o Order) Cycle(addOn string) string {
	var shortest []string
	for _, d := range o.of[addOn] {
		if way := o.way(d.Name, addOn); way != nil && (shortest == nil || len(way) < len(shortest)) {
			shortest = way
		}
	}
	if shortest == nil {
		return ""
	}
	first := slices.Index(shortest, slices.Min(shortest))
	turned := slices.Concat(shortest[first:], shortest[:first])
	return message.List(turned, maxInCycle, " > ") + " > " + turned[0]
}

// Problem returns why the dependencies of an add-on cannot be followed; empty where they can. exists reports whether
// there is a ClusterManagementAddOn of a name.
func (o Order) Problem(addOn string, exists func(string) bool) string {
	if cycle := o.Cycle(addOn); cycle != "" {
		return inCycle(cycle)
	}
	var unknown []string
	for _, d := range o.of[addOn] {
		if !exists(d.Name) {
			unknown = append(unknown, d.Name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return "it depends on " + message.List(unknown, maxNames, ", ") + ", of which there is no ClusterManagementAddOn"
}

func inCycle(cycle string) string {
	return fmt.Sprintf("its dependencies are a cycle, which cannot be followed: %s", cycle)
}

// Concerns returns the names of the add-ons on which others depend, or did, by the policies of a change, or in a cycle
// that it may make or break up. Anything else than a policy concerns none.
func (o Order) Concerns(change ...client.Object) sets.Set[string] {
	all := sets.New[string]()
	for _, object := range change {
		policy, is := object.(*policies.AddOnPolicy)
		if !is {
			continue
		}
		for _, d := range policy.Spec.DependsOn {
			all.Insert(d.Name)
		}
		for _, name := range o.Above(policy.Name) {
			all.Insert(o.Depends(name)...)
		}
	}
	return all
}
