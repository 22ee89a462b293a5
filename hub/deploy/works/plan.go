package works

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// WaitError names objects that must be gone before anything can be deployed. A condition shows it, and an event ends
// it.
type WaitError struct{ message string }

// Error implements error.
func (e *WaitError) Error() string { return e.message }

func (s *slot) add(m Manifest) {
	s.manifests = append(s.manifests, m)
	s.bytes += len(m.Raw)
}

// Plan plans the deploy works of a set for its manifests. have may have works of other sets and of others. It returns
// the steps and the works of the set that stay unchanged. Works of the set in another namespace than that of the set
// are deleted. On an error none may be touched.
func Plan(
	set Set, manifests []Manifest, o Options, have []*workv1.ManifestWork,
) ([]Step, []*workv1.ManifestWork, error) {
	if standing, current := Current(have, o, set); current && !standing.Foreign {
		if own := set.Select(have); manifestsIn(own) == len(manifests) {
			return nil, own, nil
		}
	}
	e, err := observe(set, have)
	if err != nil {
		return nil, nil, err
	}
	rest := keepAssignments(manifests, e.slots, e.deleting)
	slots := assign(rest, e.slots, stored(e.slots), e.used)

	steps := make([]Step, 0, len(slots))
	kept := slices.Clone(e.deleting)
	for _, work := range e.elsewhere {
		steps = append(steps, Step{Verb: reconcile.Delete, Before: work})
	}
	for _, s := range slots {
		if s.keepUntilApplied(manifests, e.slots) {
			kept = append(kept, s.there) // It is written when the others have what it gives away.
			continue
		}
		switch {
		case len(s.manifests) == 0 && s.there != nil:
			steps = append(steps, Step{Verb: reconcile.Delete, Before: s.there})
		case s.there == nil:
			work := newWork(set, o, s)
			work.Annotations = reconcile.WithEntries(work.Annotations, map[string]string{
				names.AnnotationRenderedFrom: rendered(o, len(manifests), s),
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
	return steps, kept, nil
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
			e.slots = append(e.slots, &slot{index: index, there: work})
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

// keepUntilApplied lets an existing work keep the objects that move to other works of the set, until one of those is
// applied with them: no write takes an object from its cluster. It reports whether they do not fit, so that the work
// must stay as it is.
func (s *slot) keepUntilApplied(manifests []Manifest, slots []*slot) bool {
	if s.there == nil {
		return false
	}
	mine := make(map[Identity]bool, len(s.manifests))
	for i := range s.manifests {
		mine[s.manifests[i].Identity] = true
	}
	moving := slices.DeleteFunc(slices.Clone(manifests), func(m Manifest) bool { return mine[m.Identity] })
	var others []*workv1.ManifestWork
	for _, other := range slots {
		if other != s {
			others = append(others, other.there)
		}
	}
	held := Hold(moving, []*workv1.ManifestWork{s.there}, others)
	for i := range held {
		s.add(held[i])
	}
	s.held = len(held)
	return s.held > 0 && s.bytes > maxAPIBytes
}

// keepAssignments leaves each manifest in its work as long as that work fits the limit, and returns the manifests
// without a work. Manifests in a work that is being deleted wait until it is gone. What a work only holds for another
// one is no longer its own, unless nobody else has it.
func keepAssignments(manifests []Manifest, slots []*slot, deleting []*workv1.ManifestWork) []Manifest {
	unplaced := make(map[Identity]Manifest, len(manifests))
	for _, m := range manifests {
		unplaced[m.Identity] = m
	}
	for _, held := range []bool{false, true} {
		for _, s := range slots {
			stored := ReadAll(s.there)
			own := len(stored) - heldBy(s.there)
			for i := range stored {
				if m, wanted := unplaced[stored[i].Identity]; wanted && held == (i >= own) {
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
		for _, object := range ReadAll(s.there) {
			all[object.Identity] = append(all[object.Identity], s)
		}
	}
	return all
}

// assign assigns each manifest to a work, the largest first: to the emptiest existing work with enough room, or else to
// a new one. One that moves goes to a new work, or to one that has it already, which waits for no other one: existing
// works might wait for each other.
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
			if s.bytes+len(m.Raw) <= MaxBytes && (roomiest == nil || s.bytes < roomiest.bytes) {
				roomiest = s
			}
		}
		switch {
		case roomiest != nil:
			roomiest.add(m)
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

// Hold returns those of the manifests which a work of the side that they leave still has, while no work of the side
// that they go to is applied with them. It is for works on one cluster: the old work keeps such an object until the new
// one has it, so that it is not deleted in between.
func Hold(manifests []Manifest, from, to []*workv1.ManifestWork) []Manifest {
	there := map[Identity]bool{}
	for _, work := range from {
		for _, stored := range ReadAll(work) {
			there[stored.Identity] = true
		}
	}
	for _, work := range to {
		applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration < work.Generation {
			continue
		}
		for _, stored := range ReadAll(work) {
			delete(there, stored.Identity)
		}
	}
	var held []Manifest
	for _, m := range manifests {
		if there[m.Identity] {
			held = append(held, m)
		}
	}
	return held
}

func byOrder(a, b Manifest) int { return cmp.Compare(a.order, b.order) }

func firstFree(used map[int]bool) int {
	for i := 0; ; i++ {
		if !used[i] {
			return i
		}
	}
}
