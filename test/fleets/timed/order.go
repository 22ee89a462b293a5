package timed

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/fleets"
)

// OrderBend changes what is decided about the order of add-ons, as a bug does.
type OrderBend struct {
	Judge  func(*gate.Verdict)
	State  func(*gate.State)
	Others func(*gate.Others)
}

// Order is the property that add-ons come after those that they depend on, and go before them, on each cluster.
func Order(b OrderBend) fleets.Property {
	return fleets.Property{Name: "order", Play: func(g *fleets.Game) {
		w := &ordered{Game: g, bend: b}
		w.draw()
		if w.come(); !g.Violated() {
			w.leave()
		}
	}}
}

// ordered is one cluster with add-ons that depend on each other.
type ordered struct {
	*fleets.Game
	bend OrderBend
	all  []*part
}

// part is one add-on on the cluster.
type part struct {
	name string
	// needs are the parts that come before it, and optional those of them that it does without.
	needs, optional []*part
	// unknown is set where it has no ClusterManagementAddOn, there reports whether the cluster has it, begun whether it
	// has a content, well whether it works, and going whether it is being deleted.
	unknown, there, begun, well, going bool
}

func (w *ordered) chance(once int) bool { return w.Random.IntN(once) == 0 }

func (w *ordered) draw() {
	for i := range 2 + w.Random.IntN(4) {
		w.all = append(w.all, &part{name: string(rune('a' + i)), unknown: w.chance(20)})
	}
	acyclic := w.chance(2)
	for i, p := range w.all {
		for j, other := range w.all {
			if i == j || acyclic && j > i || !w.chance(3) {
				continue
			}
			if p.needs = append(p.needs, other); w.chance(4) {
				p.optional = append(p.optional, other)
			}
		}
	}
}

// policies are those of the add-ons.
func (w *ordered) policies() (all []policies.AddOnPolicy) {
	for _, p := range w.all {
		o := policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
		for _, other := range p.needs {
			d := policies.Dependency{Name: other.name}
			if slices.Contains(p.optional, other) {
				d.Type = policies.DependencyOptional
			}
			o.Spec.DependsOn = append(o.Spec.DependsOn, d)
		}
		all = append(all, o)
	}
	return all
}

func (w *ordered) find(name string) *part {
	return w.all[slices.IndexFunc(w.all, func(p *part) bool { return p.name == name })]
}

// object is the ManagedClusterAddOn of a part; nil where the cluster does not have it.
func (p *part) object() *addonv1beta1.ManagedClusterAddOn {
	if !p.there {
		return nil
	}
	o := fixture.AddOn("c")
	if o.Name = p.name; p.going {
		o.DeletionTimestamp = &metav1.Time{Time: fixture.Noon()}
	}
	status := metav1.ConditionFalse
	if p.well {
		status = metav1.ConditionTrue
	}
	if p.begun {
		fixture.With(o, fixture.Condition(
			addonv1beta1.ManagedClusterAddOnConditionAvailable, status, "Lease", fixture.Noon()))
	}
	return o
}

// verdict asks whether an add-on may begin.
func (w *ordered) verdict(p *part) gate.Verdict {
	w.Decisions++
	all := w.policies()
	at := slices.IndexFunc(all, func(o policies.AddOnPolicy) bool { return o.Name == p.name })
	g := gate.New(p.name, &all[at], nil).After(p.name, gate.NewOrder(all), func(name string) bool {
		return !w.find(name).unknown
	})
	c := gate.Cluster{Before: map[string]gate.State{}}
	for _, other := range p.needs {
		state := gate.State{Absent: true}
		if o := other.object(); o != nil {
			state = gate.StateOf(o, addonv1beta1.ManagedClusterAddOnConditionAvailable, true)
		}
		if w.bend.State != nil {
			w.bend.State(&state)
		}
		c.Before[other.name] = state
	}
	v := g.Judge(c, "content", fixture.Noon().Add(time.Duration(w.Steps)*time.Minute))
	if w.bend.Judge != nil {
		w.bend.Judge(&v)
	}
	return v
}

// lacks returns the names of what an add-on still waits for.
func (p *part) lacks() (names []string) {
	for _, other := range p.needs {
		optional := slices.Contains(p.optional, other)
		works := other.there && other.well && other.begun && !other.going && (optional || !other.unknown)
		if !other.there && optional || works {
			continue
		}
		names = append(names, other.name)
	}
	return names
}

// reaches reports whether an add-on depends on another one, by others or by itself.
func (p *part) reaches(other *part) bool {
	seen := map[*part]bool{}
	var look func(*part) bool
	look = func(at *part) bool {
		for _, next := range at.needs {
			if next == other {
				return true
			}
			if !seen[next] {
				if seen[next] = true; look(next) {
					return true
				}
			}
		}
		return false
	}
	return look(p)
}

// come installs the add-ons in any order, and judges who begins; then people mend what keeps any of them waiting.
func (w *ordered) come() {
	for range 6 + w.Random.IntN(12) {
		w.Steps++
		p := w.all[w.Random.IntN(len(w.all))]
		switch {
		case !p.there:
			p.there = true
		case p.begun:
			p.well = !w.chance(4) // It may break, and nobody goes because of that.
		}
		w.begin()
	}
	for range 4 * len(w.all) {
		w.Steps++
		for _, p := range w.all {
			p.there, p.unknown, p.well = true, false, p.begun
			for _, other := range slices.Clone(p.needs) {
				if other == p || other.reaches(p) { // They break the cycle up.
					p.needs = slices.DeleteFunc(p.needs, func(o *part) bool { return o == other })
				}
			}
		}
		if w.begin(); w.Violated() {
			return
		}
	}
	for _, p := range w.all {
		w.Rule("ends", p.begun, "%s waits for ever: %q", p.name, w.verdict(p).Held)
	}
}

// begin lets those begin that may, in any order.
func (w *ordered) begin() {
	for _, i := range w.Random.Perm(len(w.all)) {
		p := w.all[i]
		if !p.there || p.begun {
			continue
		}
		v, lacks := w.verdict(p), p.lacks()
		if p.reaches(p) {
			_, cycle, says := strings.Cut(v.Held, "are a cycle, which cannot be followed: ")
			w.Rule("cycle", says && w.isCycle(cycle, p), "%s is in a cycle, and says %q", p.name, v.Held)
			continue
		}
		w.Rule("order", v.Held != "" || len(lacks) == 0, "%s begins before %v", p.name, lacks)
		named := slices.ContainsFunc(lacks, func(name string) bool {
			return strings.Contains(v.Held, "depends on add-on "+name+",")
		})
		w.Rule("sentence", v.Held == "" || named, "%s waits for %v, and says %q", p.name, lacks, v.Held)
		p.begun = v.Held == ""
	}
}

// isCycle reports whether a text names a cycle that an add-on is in.
func (w *ordered) isCycle(text string, p *part) bool {
	names := strings.Split(text, " > ")
	if len(names) < 3 || names[0] != names[len(names)-1] || !slices.Contains(names, p.name) {
		return false
	}
	for i := range names[1:] {
		if !slices.Contains(w.find(names[i]).needs, w.find(names[i+1])) {
			return false
		}
	}
	return true
}

// leave deletes some add-ons, or all, and judges who goes.
func (w *ordered) leave() {
	every := w.chance(2)
	for _, p := range w.all {
		p.going = every || w.chance(2)
	}
	order := gate.NewOrder(w.policies())
	for turn := range 3 * len(w.all) {
		w.Steps++
		for _, i := range w.Random.Perm(len(w.all)) {
			p := w.all[i]
			if !p.there || !p.going || turn < len(w.all) && w.chance(3) {
				continue
			}
			w.Decisions++
			others, err := order.Others(types.NamespacedName{Namespace: "c", Name: p.name}, w.read)
			if w.bend.Others != nil {
				w.bend.Others(&others)
			}
			holds := w.holds(p)
			w.Rule("reverse", err == nil && (len(others.Hold) > 0 || len(holds) == 0), "%s goes before %v", p.name, holds)
			w.Rule("ends", len(others.Hold) == 0 || len(holds) > 0, "%s waits for %v, and nobody depends on it",
				p.name, others.Hold)
			p.there = len(others.Hold) > 0
		}
	}
	for _, p := range w.all {
		w.Rule("ends", !every || !p.there, "%s never goes", p.name)
	}
}

func (w *ordered) read(key types.NamespacedName) (client.Object, error) {
	if o := w.find(key.Name).object(); o != nil {
		return o, nil
	}
	return nil, nil // It is not there.
}

// holds returns the names of those that go before an add-on.
func (w *ordered) holds(p *part) (names []string) {
	for _, other := range w.all {
		optional := slices.Contains(other.optional, p)
		if other.there && slices.Contains(other.needs, p) && (!optional || other.going) {
			names = append(names, other.name)
		}
	}
	return names
}
