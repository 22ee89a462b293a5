package works

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// slot is one ManifestWork with the manifests assigned to it.
type slot struct {
	index int
	// there is the existing work; nil for a new one.
	there *workv1.ManifestWork
	// objects are those of the existing work, and has tells which. applied are those of them that its cluster has applied.
	objects      []Stored
	has, applied map[Identity]bool

	manifests []Manifest
	bytes     int
	// total is the number of bytes that the work would have with all that it must still keep for other works.
	total int
	// held is how many of the manifests, the last ones, stay only until another work of the set has them applied.
	held int
}

// newSlot returns the slot of an existing work, without manifests.
func newSlot(index int, work *workv1.ManifestWork) *slot {
	s := &slot{index: index, there: work, objects: ReadAll(work), has: map[Identity]bool{}, applied: appliedIn(work)}
	for i := range s.objects {
		s.has[s.objects[i].Identity] = true
	}
	return s
}

func (s *slot) add(m Manifest) {
	s.manifests = append(s.manifests, m)
	s.bytes += len(m.Raw)
}

// take adds a manifest that had no work. One that the work has counts in total already.
func (s *slot) take(m Manifest) {
	s.total += s.growth(m)
	s.add(m)
}

// growth returns by how much a manifest that has no work makes total larger.
func (s *slot) growth(m Manifest) int {
	if s.has[m.Identity] {
		return 0
	}
	return len(m.Raw)
}

// hasRoom reports whether an existing work can be written with a manifest more.
func (s *slot) hasRoom(m Manifest) bool {
	return s.bytes+len(m.Raw) <= MaxBytes && s.total+s.growth(m) <= maxAPIBytes
}

// keeps returns the manifests that an existing work must keep although other works get them: those that it has, until
// the work that each one goes to is applied with it. No write takes an object from its cluster then. to has the slot of
// each manifest; one without a slot is kept.
func (s *slot) keeps(manifests []Manifest, to map[Identity]*slot) []Manifest {
	var kept []Manifest
	for _, m := range manifests {
		other := to[m.Identity]
		if s.has[m.Identity] && other != s && (other == nil || !other.applied[m.Identity]) {
			kept = append(kept, m)
		}
	}
	return kept
}

// owners returns the slot of each manifest.
func owners(slots []*slot) map[Identity]*slot {
	all := map[Identity]*slot{}
	for _, s := range slots {
		for i := range s.manifests {
			all[s.manifests[i].Identity] = s
		}
	}
	return all
}

// vacate computes the total of existing works. It takes all manifests from each work that cannot be written because
// another work, whose cluster does not apply it, must have its objects first, and returns them. The other work may need
// what the first one would bring, so new works bring it: no work has to wait for a work that waits.
func vacate(manifests []Manifest, slots []*slot) []Manifest {
	var rest []Manifest
	for again := true; again; {
		again = false
		to := owners(slots)
		for _, s := range slots {
			kept := s.keeps(manifests, to)
			s.total = s.bytes
			refused := false
			for i := range kept {
				s.total += len(kept[i].Raw)
				other := to[kept[i].Identity]
				refused = refused || (other != nil && isRefused(other.there))
			}
			if refused && s.total > maxAPIBytes && len(s.manifests) > 0 {
				rest = append(rest, s.manifests...)
				s.manifests, s.bytes, again = nil, 0, true
				break
			}
		}
	}
	return rest
}

// reduced returns the existing work as it is, without the objects that the slot does not have, and whether there are
// any: an object that another work has applied must not be put back to the version of before. A work from a cache has
// digests, which Whole replaces.
func (s *slot) reduced() (*workv1.ManifestWork, bool) {
	mine := map[Identity]bool{}
	for i := range s.manifests {
		mine[s.manifests[i].Identity] = true
	}
	after := s.there.DeepCopy()
	all := &after.Spec.Workload
	all.Manifests = slices.DeleteFunc(all.Manifests, func(m workv1.Manifest) bool {
		stored, err := Glance(&m)
		return err != nil || !mine[stored.Identity]
	})
	return after, len(all.Manifests) < len(s.there.Spec.Workload.Manifests)
}

// waitsFor explains which objects other works must apply before the work of a slot can be written.
func waitsFor(set Set, s *slot, held []Manifest, to map[Identity]*slot) string {
	const most = 5
	var objects, others []string
	for i := range held {
		objects = append(objects, held[i].String())
		if name := "ManifestWork " + set.Name(to[held[i].Identity].index); !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	if len(objects) > most {
		objects = append(objects[:most], fmt.Sprintf("%d other objects", len(objects)-most))
	}
	return fmt.Sprintf("ManifestWork %s keeps the earlier versions of %s until the new ones are applied by %s. It has no "+
		"room for the new ones: it would have %d bytes of manifests, and a ManifestWork takes no more than %d.",
		s.there.Name, strings.Join(objects, ", "), strings.Join(others, ", "), s.bytes, maxAPIBytes)
}

// judgement returns the condition Applied of a work if it is about the present generation; nil otherwise.
func judgement(work *workv1.ManifestWork) *metav1.Condition {
	if work == nil {
		return nil
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
	if applied == nil || applied.ObservedGeneration < work.Generation {
		return nil
	}
	return applied
}

// isRefused reports whether a cluster did not apply all objects of a work in its present generation.
func isRefused(work *workv1.ManifestWork) bool {
	applied := judgement(work)
	return applied != nil && applied.Status != metav1.ConditionTrue
}

// appliedIn returns the objects of a work that its cluster has applied in the present generation: all, or those of
// which the cluster says so where it cannot apply all.
func appliedIn(work *workv1.ManifestWork) map[Identity]bool {
	applied, all := judgement(work), map[Identity]bool{}
	if applied == nil {
		return all
	}
	reported := map[Identity]bool{}
	for _, m := range work.Status.ResourceStatus.Manifests {
		about := m.ResourceMeta
		id := Identity{about.Group, about.Kind, about.Namespace, about.Name}
		before, twice := reported[id]
		reported[id] = isApplied(m.Conditions, work.Generation) && (before || !twice)
	}
	for _, stored := range ReadAll(work) {
		if applied.Status == metav1.ConditionTrue || reported[stored.Identity] {
			all[stored.Identity] = true
		}
	}
	return all
}

// isApplied reports whether conditions of a manifest say that it is applied in a generation of its work. Older agents
// of OCM state no generation there; they write these conditions together with that of the work.
func isApplied(conditions []metav1.Condition, generation int64) bool {
	applied := meta.FindStatusCondition(conditions, workv1.ManifestApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue &&
		cmp.Or(applied.ObservedGeneration, generation) >= generation
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
		for id := range appliedIn(work) {
			delete(there, id)
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
