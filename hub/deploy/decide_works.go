package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// maxWorkBytes is the limit for the manifests of one of our ManifestWorks (docs/reference/hub.md, "Splitting into
// works"): four fifths of the limit of the API.
const maxWorkBytes = 500 * 1024 * 4 / 5

// waitError names objects that must be gone before anything can be deployed. A condition shows it, and an event ends
// it.
type waitError struct{ message string }

// Error implements error.
func (e *waitError) Error() string { return e.message }

// slot is one ManifestWork with the manifests assigned to it.
type slot struct {
	index int
	// there is the existing work; nil for a new one.
	there     *workv1.ManifestWork
	manifests []manifest
	bytes     int
}

func (s *slot) add(m manifest) {
	s.manifests = append(s.manifests, m)
	s.bytes += len(m.raw)
}

// planWorks plans the ManifestWorks for the objects of the agent. It also returns our works that stay unchanged. On an
// error none may be touched.
func planWorks(f facts) ([]workStep, []*workv1.ManifestWork, error) {
	manifests, err := encode(f.rendering.Objects)
	if err != nil {
		return nil, nil, err
	}
	slots, used, deleting, err := observedSlots(f)
	if err != nil {
		return nil, nil, err
	}
	rest := keepAssignments(manifests, slots, deleting)
	slots = assign(rest, slots, used)

	var steps []workStep
	kept := slices.Clone(deleting)
	common := commonSpec(f)
	for _, s := range slots {
		switch {
		case len(s.manifests) == 0 && s.there != nil:
			steps = append(steps, workStep{Verb: reconcile.Delete, Before: s.there})
		case s.there == nil:
			steps = append(steps, workStep{Verb: reconcile.Create, After: newWork(f, common, s)})
		default:
			after, changed := changedWork(f, common, s)
			if !changed {
				kept = append(kept, s.there)
				continue
			}
			steps = append(steps, workStep{Verb: reconcile.Patch, Before: s.there, After: after})
		}
	}
	return steps, kept, nil
}

// observedSlots returns a slot for each of our works, the numbers in use by any work, and those of our works that are
// being deleted. The error means that works of an earlier add-on of this name must be gone first.
func observedSlots(f facts) (slots []*slot, used map[int]bool, deleting []*workv1.ManifestWork, err error) {
	used = map[int]bool{}
	var earlier []string
	for _, work := range f.works {
		index, numbered := workIndex(f.addOn.Name, work.Name)
		if !numbered {
			continue
		}
		used[index] = true
		switch {
		case !ours(work, f.addOn):
			if ofAnEarlierAddOn(work, f.addOn) {
				earlier = append(earlier, work.Name)
			}
		case work.DeletionTimestamp != nil:
			deleting = append(deleting, work)
		default:
			slots = append(slots, &slot{index: index, there: work})
		}
	}
	if len(earlier) > 0 {
		slices.Sort(earlier)
		return nil, nil, nil, &waitError{fmt.Sprintf("waiting until the ManifestWorks of an earlier add-on %s are gone: %s",
			f.addOn.Name, strings.Join(earlier, ", "))}
	}
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.index, b.index) })
	return slots, used, deleting, nil
}

// ownWorks returns the works that are ours.
func ownWorks(f facts) []*workv1.ManifestWork {
	var all []*workv1.ManifestWork
	for _, work := range f.works {
		if _, numbered := workIndex(f.addOn.Name, work.Name); numbered && ours(work, f.addOn) {
			all = append(all, work)
		}
	}
	return all
}

// keepAssignments leaves each manifest in its work as long as that work fits the limit, and returns the manifests
// without a work. Manifests in a work that is being deleted wait until it is gone.
func keepAssignments(manifests []manifest, slots []*slot, deleting []*workv1.ManifestWork) []manifest {
	unplaced := make(map[identity]manifest, len(manifests))
	for _, m := range manifests {
		unplaced[m.identity] = m
	}
	for _, s := range slots {
		for _, id := range identities(s.there) {
			if m, wanted := unplaced[id]; wanted {
				s.add(m)
				delete(unplaced, id)
			}
		}
	}
	for _, work := range deleting {
		for _, id := range identities(work) {
			delete(unplaced, id)
		}
	}
	rest := make([]manifest, 0, len(unplaced))
	for _, m := range manifests {
		if _, found := unplaced[m.identity]; found {
			rest = append(rest, m)
		}
	}
	for _, s := range slots {
		slices.SortFunc(s.manifests, byOrder)
		for s.bytes > maxWorkBytes {
			last := s.manifests[len(s.manifests)-1]
			s.manifests, s.bytes = s.manifests[:len(s.manifests)-1], s.bytes-len(last.raw)
			rest = append(rest, last)
		}
	}
	return rest
}

// assign assigns each manifest to a work, the largest first: to the emptiest existing work with enough room, or else to
// a new one.
func assign(rest []manifest, slots []*slot, used map[int]bool) []*slot {
	slices.SortStableFunc(rest, func(a, b manifest) int {
		return cmp.Or(cmp.Compare(len(b.raw), len(a.raw)), byOrder(a, b))
	})
	existing := slices.Clone(slots)
	var last *slot
	for _, m := range rest {
		var roomiest *slot
		for _, s := range existing {
			if s.bytes+len(m.raw) <= maxWorkBytes && (roomiest == nil || s.bytes < roomiest.bytes) {
				roomiest = s
			}
		}
		switch {
		case roomiest != nil:
			roomiest.add(m)
			continue
		case last == nil || last.bytes+len(m.raw) > maxWorkBytes:
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

func byOrder(a, b manifest) int { return cmp.Compare(a.order, b.order) }

func firstFree(used map[int]bool) int {
	for i := 0; ; i++ {
		if !used[i] {
			return i
		}
	}
}

// identities lists the objects in a work. An unreadable manifest is replaced together with the rest of the work.
func identities(work *workv1.ManifestWork) []identity {
	all := make([]identity, 0, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		if s, err := readManifest(&work.Spec.Workload.Manifests[i]); err == nil {
			all = append(all, s.identity)
		}
	}
	return all
}

// workName names a work of an add-on (docs/reference/hub.md, "Works of an add-on").
func workName(addOn string, index int) string {
	return workPrefix(addOn) + strconv.Itoa(index)
}

func workPrefix(addOn string) string { return "addon-" + addOn + "-deploy-" }

// workIndex is the inverse of workName; false for any other name.
func workIndex(addOn, name string) (int, bool) {
	digits, found := strings.CutPrefix(name, workPrefix(addOn))
	if !found {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == digits
}

// ofAnEarlierAddOn reports whether a work belonged to an add-on of this name that was deleted since.
func ofAnEarlierAddOn(work *workv1.ManifestWork, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	for _, owner := range work.OwnerReferences {
		if owner.Kind == "ManagedClusterAddOn" && owner.Name == addOn.Name && owner.UID != addOn.UID {
			return true
		}
	}
	return false
}
