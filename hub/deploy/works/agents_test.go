package works

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// version is an object of one rendering.
type version struct {
	id    Identity
	bytes int
	// needs are the versions of other objects without which a cluster refuses this one.
	needs map[Identity][sha256.Size]byte
	// broken objects are always refused.
	broken bool
}

// spoke is a cluster with its agent, and the hub that has its works.
type spoke struct {
	t      *testing.T
	random *rand.Rand
	set    Set
	works  []*workv1.ManifestWork
	// versions are those of all renderings by their sums.
	versions map[[sha256.Size]byte]version
	// manifests and options are the present rendering.
	manifests []Manifest
	options   Options
	// live are the versions on the cluster, and owners the works that have an object applied.
	live   map[Identity][sha256.Size]byte
	owners map[Identity]map[string]bool
	waits  []string
}

func newSpoke(t *testing.T, random *rand.Rand) *spoke {
	t.Helper()
	return &spoke{
		t: t, random: random, set: testSet(), versions: map[[sha256.Size]byte]version{},
		live: map[Identity][sha256.Size]byte{}, owners: map[Identity]map[string]bool{},
	}
}

// item is an object of a rendering to be.
type item struct {
	object *unstructured.Unstructured
	needs  []int
	broken bool
}

// render makes a rendering the present one.
func (s *spoke) render(items []item) {
	s.t.Helper()
	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, i := range items {
		objects = append(objects, i.object)
	}
	d, err := Divide(objects, false)
	require.NoError(s.t, err)
	s.manifests = d.Deploy[Managed]
	s.options = OptionsOf(addon.Rendering{Objects: objects}, nil, func(key string) string {
		return Fingerprint(key, nil, addon.HealthLease, "")
	}, d)
	for i, m := range s.manifests {
		v := version{id: m.Identity, bytes: len(m.Raw), broken: items[i].broken, needs: map[Identity][sha256.Size]byte{}}
		for _, n := range items[i].needs {
			v.needs[s.manifests[n].Identity] = s.manifests[n].sum
		}
		s.versions[m.sum] = v
	}
}

// plan is a pass of the hub. Some of its writes fail.
func (s *spoke) plan(fails float64) (written int) {
	s.t.Helper()
	planned, err := Plan(s.set, s.manifests, s.options, s.works)
	require.NoError(s.t, err)
	s.waits = planned.Waits
	for _, step := range planned.Steps {
		written++
		if s.random.Float64() < fails {
			continue
		}
		at := slices.Index(s.works, step.Before)
		switch step.Verb {
		case reconcile.Delete:
			s.works[at] = s.works[at].DeepCopy()
			s.works[at].DeletionTimestamp = &metav1.Time{}
		case reconcile.Create:
			step.After.Generation = 1
			s.works = append(s.works, trimmed(s.t, step.After))
		default:
			after := trimmed(s.t, step.After)
			if specHash(&after.Spec) != specHash(&s.works[at].Spec) {
				after.Generation++
			}
			s.works[at] = after
			require.NotEmpty(s.t, after.Spec.Workload.Manifests)
		}
	}
	for _, work := range s.works {
		require.LessOrEqual(s.t, s.bytes(work), maxAPIBytes)
	}
	return written
}

func (s *spoke) bytes(work *workv1.ManifestWork) (sum int) {
	for _, stored := range ReadAll(work) {
		sum += s.versions[stored.Sum].bytes
	}
	return sum
}

// apply is a pass of the agent for one work.
func (s *spoke) apply(at int) {
	s.t.Helper()
	work := s.works[at].DeepCopy()
	meant := map[Identity]bool{}
	if work.DeletionTimestamp == nil {
		status := metav1.ConditionTrue
		work.Status = workv1.ManifestWorkStatus{}
		for _, stored := range ReadAll(work) {
			meant[stored.Identity] = true
			one := metav1.ConditionFalse
			if s.accepts(stored.Sum) {
				s.live[stored.Identity] = stored.Sum
				if s.owners[stored.Identity] == nil {
					s.owners[stored.Identity] = map[string]bool{}
				}
				s.owners[stored.Identity][work.Name] = true
				one = metav1.ConditionTrue
			} else {
				status = metav1.ConditionFalse
			}
			work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
				ResourceMeta: workv1.ManifestResourceMeta{Group: stored.Group, Kind: stored.Kind, Namespace: stored.Namespace, Name: stored.Name},
				Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: one, ObservedGeneration: work.Generation}},
			})
		}
		work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: status, ObservedGeneration: work.Generation}}
		s.works[at] = trimmed(s.t, work)
	} else {
		s.works = slices.Delete(s.works, at, at+1)
	}
	for id, owners := range s.owners {
		if owners[work.Name] && !meant[id] {
			delete(owners, work.Name)
			if len(owners) == 0 {
				delete(s.owners, id)
				delete(s.live, id)
				wanted := slices.ContainsFunc(s.manifests, func(m Manifest) bool { return m.Identity == id })
				require.False(s.t, wanted, "work %s took %s from the cluster", work.Name, id)
			}
		}
	}
}

// accepts reports whether the cluster accepts a version of an object now.
func (s *spoke) accepts(sum [sha256.Size]byte) bool {
	v := s.versions[sum]
	for id, needed := range v.needs {
		if s.live[id] != needed {
			return false
		}
	}
	return !v.broken
}

// rounds lets hub and agent run for a while, each of them late.
func (s *spoke) rounds(n int) {
	s.t.Helper()
	for range n {
		if s.random.IntN(3) > 0 {
			s.plan(0.2)
		}
		for _, at := range slices.Backward(s.random.Perm(len(s.works))) {
			if at < len(s.works) && s.random.IntN(3) > 0 {
				s.apply(at)
			}
		}
	}
}

// settle lets hub and agent run until neither does anything any more.
func (s *spoke) settle() {
	s.t.Helper()
	written := 0
	for range 60 {
		live := maps.Clone(s.live)
		steps := s.plan(0)
		written += steps
		count := len(s.works)
		for _, at := range s.random.Perm(count) {
			if at < len(s.works) {
				s.apply(at)
			}
		}
		if steps == 0 && len(s.works) == count && maps.Equal(live, s.live) && s.plan(0) == 0 {
			require.LessOrEqual(s.t, written, 12*len(s.manifests))
			return
		}
	}
	require.Fail(s.t, "the works do not settle")
}

// refused returns the objects that the cluster does not have as they are wanted. It checks that each of them is in a
// work as it is wanted, and that it is broken or needs one that is.
func (s *spoke) refused() (names []string) {
	s.t.Helper()
	sent := map[[sha256.Size]byte]bool{}
	for _, work := range s.works {
		for _, stored := range ReadAll(work) {
			sent[stored.Sum] = true
		}
	}
	for _, m := range s.manifests {
		require.True(s.t, sent[m.sum], "no work has the new version of %s", m.Identity)
		if s.live[m.Identity] != m.sum {
			require.True(s.t, s.cannot(m.sum), "the cluster does not have the new version of %s", m.Identity)
			names = append(names, m.Name)
		}
	}
	return names
}

// cannot reports whether a version is broken, or needs one that is.
func (s *spoke) cannot(sum [sha256.Size]byte) bool {
	v := s.versions[sum]
	for _, needed := range v.needs {
		if s.cannot(needed) {
			return true
		}
	}
	return v.broken
}

// done checks that the works and the cluster have what is wanted, and each object once.
func (s *spoke) done() {
	s.t.Helper()
	seen := map[Identity]string{}
	for _, work := range s.works {
		require.LessOrEqual(s.t, s.bytes(work), MaxBytes)
		for _, stored := range ReadAll(work) {
			require.Empty(s.t, seen[stored.Identity], "%s is in two works", stored.Identity)
			seen[stored.Identity] = work.Name
		}
	}
	require.Len(s.t, seen, len(s.manifests))
	for _, m := range s.manifests {
		require.Equal(s.t, m.sum, s.live[m.Identity], "%s is on the cluster as it is wanted", m.Identity)
	}
	require.Empty(s.t, s.waits)
}

// items returns a random rendering. Objects need those before them in a random order; a few may be broken, and a few are
// as they were before.
func items(random *rand.Rand, before []item, rendering, broken int) []item {
	const count = 9
	all := make([]item, count)
	order := random.Perm(count)
	for rank, i := range order {
		// Small changes of many objects, and a few that make an object as large as its work.
		size := random.IntN(90_000)
		if random.IntN(4) == 0 {
			size = 150_000 + random.IntN(250_000)
		}
		o := configMap(fmt.Sprintf("o%d", i), size)
		if random.IntN(3) > 0 {
			o.SetLabels(map[string]string{"rendering": fmt.Sprint(rendering)})
		}
		all[i].object = o
		if all[i].broken = rank >= count-broken; !all[i].broken && before != nil && random.IntN(4) == 0 {
			all[i].object = before[i].object.DeepCopy() // A cluster accepts it as before.
			continue
		}
		for _, other := range order[:rank] {
			if random.IntN(3) == 0 {
				all[i].needs = append(all[i].needs, other)
			}
		}
	}
	return all
}

// TestWorksSettleWhateverIsLate: objects grow, need each other and are refused, the hub and the agent are late, and
// writes fail. No object leaves the cluster in between, the cluster gets all new versions that it accepts, and the works
// settle.
//
// Shows: hub/moves-end
func TestWorksSettleWhateverIsLate(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			s := newSpoke(t, random)
			var all []item
			for rendering := range 6 {
				broken := random.IntN(3)
				all = items(random, all, rendering, broken)
				s.render(all)
				s.rounds(random.IntN(12))
				switch {
				case broken == 0 && random.IntN(2) == 0:
					s.settle()
					s.done()
				case random.IntN(2) == 0:
					s.settle()
					s.refused()
				}
			}
			s.render(items(random, all, 6, 0))
			s.settle()
			s.done()
		})
	}
}
