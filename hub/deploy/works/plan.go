package works

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// WaitError names objects that must be gone before anything can be deployed. A condition shows it, and an event ends
// it.
type WaitError struct{ message string }

// Error implements error.
func (e *WaitError) Error() string { return e.message }

// Planned is the plan of the deploy works of a set.
type Planned struct {
	// Steps are the writes.
	Steps []Step
	// Kept are the works of the set that stay unchanged.
	Kept []*workv1.ManifestWork
	// Waits tells, in a sentence for each work that cannot be written yet, which objects it waits for.
	Waits []string
}

// Plan plans the deploy works of a set for its manifests. have may have works of other sets and of others. Works of the
// set in another namespace than that of the set are deleted. On an error none may be touched.
func Plan(set Set, manifests []Manifest, o Options, have []*workv1.ManifestWork) (Planned, error) {
	if standing, current := Current(have, o, set); current && !standing.Foreign {
		if own := set.Select(have); manifestsIn(own) == len(manifests) {
			return Planned{Kept: own}, nil
		}
	}
	e, err := observe(set, have)
	if err != nil {
		return Planned{}, err
	}
	rest := keepAssignments(manifests, e.slots, e.deleting)
	rest = append(rest, vacate(manifests, e.slots)...)
	slots := assign(rest, e.slots, stored(e.slots), e.used)

	steps := make([]Step, 0, len(slots))
	kept := slices.Clone(e.deleting)
	for _, work := range e.elsewhere {
		steps = append(steps, Step{Verb: reconcile.Delete, Before: work})
	}
	var waits []string
	to := owners(slots)
	for _, s := range slots {
		held := s.keeps(manifests, to)
		for i := range held {
			s.add(held[i])
		}
		if s.held = len(held); s.held > 0 && s.bytes > maxAPIBytes {
			waits = append(waits, waitsFor(set, s, held, to))
			if after, less := s.reduced(); less { // The rest is written when the others have what it gives away.
				steps = append(steps, Step{Verb: reconcile.Patch, Before: s.there, After: after})
			} else {
				kept = append(kept, s.there)
			}
			continue
		}
		switch {
		case len(s.manifests) == 0 && s.there != nil:
			steps = append(steps, Step{Verb: reconcile.Delete, Before: s.there})
		case s.there == nil:
			work := newWork(set, o, s)
			work.Annotations = reconcile.WithEntries(work.Annotations, map[string]string{
				names.AnnotationRenderedFrom: rendered(o, len(manifests), s).annotation(),
			})
			steps = append(steps, Step{Verb: reconcile.Create, After: work})
		default:
			record := rendered(o, len(manifests), s)
			after, changed := changedWork(set, o, s, record)
			if !changed {
				kept = append(kept, s.there)
				continue
			}
			steps = append(steps, Step{Verb: reconcile.Patch, Before: s.there, After: after})
		}
	}
	return Planned{steps, kept, waits}, nil
}

// existing are the existing works of a set.
type existing struct {
	// slots has a slot for each work in the namespace of the set that is not being deleted.
	slots []*slot
	// used are the numbers in use in that namespace, by any work.
	used map[int]bool
	// deleting are the works in that namespace that are being deleted.
	deleting []*workv1.ManifestWork
	// elsewhere are the works in other namespaces that are not being deleted.
	elsewhere []*workv1.ManifestWork
}

// observe sorts the existing works of a set. The error means that works of an earlier add-on of this name must be gone
// first.
func observe(set Set, have []*workv1.ManifestWork) (existing, error) {
	e := existing{used: map[int]bool{}}
	var earlier []string
	for _, work := range have {
		index, numbered := set.Index(work.Name)
		here := work.Namespace == set.Namespace
		if !numbered || (!here && !set.Has(work)) {
			continue
		}
		if here {
			e.used[index] = true
		}
		switch {
		case !set.Has(work):
			if ofAnEarlierAddOn(work, set.AddOn) {
				earlier = append(earlier, work.Name)
			}
		case here && work.DeletionTimestamp != nil:
			e.deleting = append(e.deleting, work)
		case here:
			e.slots = append(e.slots, newSlot(index, work))
		case work.DeletionTimestamp == nil:
			e.elsewhere = append(e.elsewhere, work)
		}
	}
	if len(earlier) > 0 {
		slices.Sort(earlier)
		return existing{}, &WaitError{fmt.Sprintf("waiting until the ManifestWorks of an earlier add-on %s are gone: %s",
			set.AddOn.Name, strings.Join(earlier, ", "))}
	}
	slices.SortFunc(e.slots, func(a, b *slot) int { return cmp.Compare(a.index, b.index) })
	return e, nil
}

// keepAssignments leaves each manifest in its work as long as that work fits the limit, and returns the manifests
// without a work. Manifests in a work that is being deleted wait until it is gone. Where several works have an object,
// it belongs to one that has it as it is wanted: the others give it away and were not written since. What a work only
// holds for another one is no longer its own, unless no other one has it.
func keepAssignments(manifests []Manifest, slots []*slot, deleting []*workv1.ManifestWork) []Manifest {
	unplaced := make(map[Identity]Manifest, len(manifests))
	for _, m := range manifests {
		unplaced[m.Identity] = m
	}
	for _, take := range []func(m *Manifest, there *Stored, held bool) bool{
		func(m *Manifest, there *Stored, held bool) bool { return !held && there.Sum == m.sum },
		func(_ *Manifest, _ *Stored, held bool) bool { return !held },
		func(*Manifest, *Stored, bool) bool { return true },
	} {
		for _, s := range slots {
			own := len(s.objects) - heldBy(s.there)
			for i := range s.objects {
				if m, wanted := unplaced[s.objects[i].Identity]; wanted && take(&m, &s.objects[i], i >= own) {
					s.add(m)
					delete(unplaced, m.Identity)
				}
			}
		}
	}
	for _, work := range deleting {
		for _, stored := range ReadAll(work) {
			delete(unplaced, stored.Identity)
		}
	}
	rest := make([]Manifest, 0, len(unplaced))
	for _, m := range manifests {
		if _, found := unplaced[m.Identity]; found {
			rest = append(rest, m)
		}
	}
	for _, s := range slots {
		slices.SortFunc(s.manifests, byOrder)
		for s.bytes > MaxBytes {
			last := s.manifests[len(s.manifests)-1]
			s.manifests, s.bytes = s.manifests[:len(s.manifests)-1], s.bytes-len(last.Raw)
			rest = append(rest, last)
		}
	}
	return rest
}

// stored returns the works that have an object, by its identity.
func stored(slots []*slot) map[Identity][]*slot {
	all := map[Identity][]*slot{}
	for _, s := range slots {
		for _, object := range s.objects {
			all[object.Identity] = append(all[object.Identity], s)
		}
	}
	return all
}

// assign assigns each manifest to a work, the largest first: to the emptiest existing work with enough room, or else to
// a new one. One that moves goes to a new work, or to one that has it already. No object goes to a work that cannot be
// written yet.
func assign(rest []Manifest, slots []*slot, having map[Identity][]*slot, used map[int]bool) []*slot {
	slices.SortStableFunc(rest, func(a, b Manifest) int {
		return cmp.Or(cmp.Compare(len(b.Raw), len(a.Raw)), byOrder(a, b))
	})
	existing := slices.Clone(slots)
	var last *slot
	for _, m := range rest {
		var roomiest *slot
		candidates := existing
		if have := having[m.Identity]; len(have) > 0 {
			candidates = have
		}
		for _, s := range candidates {
			if s.hasRoom(m) && (roomiest == nil || s.bytes < roomiest.bytes) {
				roomiest = s
			}
		}
		switch {
		case roomiest != nil:
			roomiest.take(m)
			continue
		case last == nil || last.bytes+len(m.Raw) > MaxBytes:
			last = &slot{index: firstFree(used)}
			used[last.index] = true
			slots = append(slots, last)
		}
		last.add(m)
	}
	for _, s := range slots {
		slices.SortFunc(s.manifests, byOrder)
	}
	return slots
}

func byOrder(a, b Manifest) int { return cmp.Compare(a.order, b.order) }

func firstFree(used map[int]bool) int {
	for i := 0; ; i++ {
		if !used[i] {
			return i
		}
	}
}
