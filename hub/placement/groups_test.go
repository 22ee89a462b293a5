package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/names"
)

// world is a Placement with decisions and a fleet whose clusters have a label ring.
type world struct {
	spec  clusterv1beta1.PlacementSpec
	rings map[string]string
	have  map[string]*clusterv1beta1.PlacementDecision
}

func newWorld(size intstr.IntOrString, groups ...string) *world {
	w := &world{rings: map[string]string{}, have: map[string]*clusterv1beta1.PlacementDecision{}}
	w.divide(size, groups...)
	return w
}

// divide sets the decision groups: one for each ring.
func (w *world) divide(size intstr.IntOrString, groups ...string) {
	strategy := clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: size}
	for _, name := range groups {
		strategy.DecisionGroups = append(strategy.DecisionGroups, clusterv1beta1.DecisionGroup{
			GroupName: name, ClusterSelector: clusterv1beta1.GroupClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": name}},
			},
		})
	}
	w.spec.DecisionStrategy.GroupStrategy = strategy
}

// add adds clusters of a ring.
func (w *world) add(ring string, clusters ...string) {
	for _, name := range clusters {
		w.rings[name] = ring
	}
}

// decide decides about the fleet in an order that random chooses.
func (w *world) decide(t *testing.T, random *rand.Rand) plan {
	t.Helper()
	f := facts{now: noon(), placement: placement(), bindings: bound(setGlobal)}
	f.placement.Spec = w.spec
	for name, ring := range w.rings {
		f.clusters = append(f.clusters, &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}, ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"ring": ring},
		}})
	}
	f.decisionSlices = slices.Collect(maps.Values(w.have))
	if random != nil {
		random.Shuffle(len(f.clusters), func(i, j int) { f.clusters[i], f.clusters[j] = f.clusters[j], f.clusters[i] })
		random.Shuffle(len(f.decisionSlices), func(i, j int) {
			f.decisionSlices[i], f.decisionSlices[j] = f.decisionSlices[j], f.decisionSlices[i]
		})
	}
	p := decided(f)
	require.NoError(t, p.misconfigured)
	return p
}

// write writes one slice of a plan.
func (w *world) write(p layout.Slice) {
	if p.Want == nil {
		delete(w.have, p.Have.Name)
		return
	}
	w.have[p.Want.Name] = p.Want
}

// settle decides and writes until nothing changes.
func (w *world) settle(t *testing.T) plan {
	t.Helper()
	for range 5 {
		p, changed := w.decide(t, nil), false
		for _, slice := range p.layout.Slices {
			changed = changed || slice.Changed()
			w.write(slice)
		}
		if !changed {
			return p
		}
	}
	t.Fatal("the decisions do not settle")
	return plan{}
}

// where returns the decision groups of each cluster, by the labels of the slices that have it.
func (w *world) where() map[string][]string {
	all := map[string][]string{}
	for _, o := range w.have {
		group := o.Labels[names.LabelDecisionGroupIndex] + o.Labels[names.LabelDecisionGroupName]
		for _, d := range o.Status.Decisions {
			all[d.ClusterName] = append(all[d.ClusterName], group)
		}
	}
	return all
}

// identities returns the parts of groups that clusters are in, which labels do not show while indexes shift.
func (w *world) identities() map[string][]string {
	all := map[string][]string{}
	for _, o := range w.have {
		for _, d := range o.Status.Decisions {
			all[d.ClusterName] = append(all[d.ClusterName], o.Annotations[names.AnnotationDecisionGroup])
		}
	}
	return all
}

// groups returns the clusters of each decision group, and checks what always holds of settled decisions.
func (w *world) groups(t *testing.T) [][]string {
	t.Helper()
	byIndex := map[int][]string{}
	for _, o := range w.have {
		index, err := strconv.Atoi(o.Labels[names.LabelDecisionGroupIndex])
		require.NoError(t, err, "every PlacementDecision has an index")
		require.Contains(t, o.Labels, names.LabelDecisionGroupName)
		require.LessOrEqual(t, len(o.Status.Decisions), sliceSize)
		require.Equal(t, "true", o.Annotations[names.AnnotationStickyPages])
		byIndex[index] = append(byIndex[index], union([]*clusterv1beta1.PlacementDecision{o})...)
	}
	all := make([][]string, len(byIndex))
	for i := range all {
		require.Contains(t, byIndex, i, "indexes have no gap")
		all[i] = byIndex[i]
		slices.Sort(all[i])
	}
	return all
}

func number(n int) intstr.IntOrString  { return intstr.FromInt(n) }
func percent(n int) intstr.IntOrString { return intstr.FromString(fmt.Sprintf("%d%%", n)) }
func strs(all ...[]string) [][]string  { return all }
func status(p plan) (summary []string) {
	for _, g := range p.layout.Groups {
		summary = append(summary, fmt.Sprintf("%d %s %d %d", g.DecisionGroupIndex, g.DecisionGroupName,
			g.ClustersCount, len(g.Decisions)))
	}
	return summary
}

func TestHowClustersAreDivided(t *testing.T) {
	tests := map[string]struct {
		size   intstr.IntOrString
		groups []string
		rings  map[string]int
		want   []string
	}{
		"one group without a strategy":                      {rings: map[string]int{"x": 3}, want: []string{"0  3 1"}},
		"one group on several slices":                       {rings: map[string]int{"x": 250}, want: []string{"0  250 3"}},
		"one group even without clusters":                   {groups: []string{"canary"}, want: []string{"0  0 1"}},
		"groups in their order, then the rest":              {groups: []string{"b", "a"}, rings: map[string]int{"a": 2, "b": 1, "c": 3}, want: []string{"0 b 1 1", "1 a 2 1", "2  3 1"}},
		"a group without clusters has no index":             {groups: []string{"b", "a"}, rings: map[string]int{"a": 2, "c": 3}, want: []string{"0 a 2 1", "1  3 1"}},
		"groups are cut":                                    {size: number(2), groups: []string{"a"}, rings: map[string]int{"a": 3, "c": 5}, want: []string{"0 a 2 1", "1 a 1 1", "2  2 1", "3  2 1", "4  1 1"}},
		"by a share of all clusters, rounded up":            {size: percent(30), rings: map[string]int{"c": 5}, want: []string{"0  2 1", "1  2 1", "2  1 1"}},
		"also of those in other groups":                     {size: percent(50), groups: []string{"a"}, rings: map[string]int{"a": 8, "c": 2}, want: []string{"0 a 5 1", "1 a 3 1", "2  2 1"}},
		"a number as text counts as a number":               {size: intstr.FromString("4"), rings: map[string]int{"c": 5}, want: []string{"0  4 1", "1  1 1"}},
		"a group on several slices before another":          {size: number(150), groups: []string{"a"}, rings: map[string]int{"a": 160, "c": 1}, want: []string{"0 a 150 2", "1 a 10 1", "2  1 1"}},
		"selectors of groups with one name select together": {groups: []string{"a", "b", "a"}, rings: map[string]int{"a": 2, "b": 1}, want: []string{"0 a 2 1", "1 b 1 1"}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(tc.size, tc.groups...)
			for ring, n := range tc.rings {
				for i := range n {
					w.add(ring, fmt.Sprintf("%s%03d", ring, i))
				}
			}
			p := w.settle(t)
			assert.Equal(t, tc.want, status(p))
			w.groups(t)
		})
	}
}

func TestWhatHappensToDecisionGroups(t *testing.T) {
	tests := map[string]struct {
		size   intstr.IntOrString
		change func(*world)
		want   [][]string
	}{
		"a newcomer fills a group, and moves nobody": {
			number(3), func(w *world) { w.add("", "a") }, strs([]string{"c", "d", "e"}, []string{"a", "f", "g"}),
		},
		"then a new group begins": {
			number(3), func(w *world) { w.add("", "a", "b") }, strs([]string{"c", "d", "e"}, []string{"a", "f", "g"}, []string{"b"}),
		},
		"a cluster that leaves makes room": {
			number(3), func(w *world) { delete(w.rings, "d"); w.add("", "x") }, strs([]string{"c", "e", "x"}, []string{"f", "g"}),
		},
		"groups that have become small are left": {
			number(3), func(w *world) { delete(w.rings, "c"); delete(w.rings, "d") }, strs([]string{"e"}, []string{"f", "g"}),
		},
		"a group without a cluster ends": {
			number(3), func(w *world) { delete(w.rings, "c"); delete(w.rings, "d"); delete(w.rings, "e") }, strs([]string{"f", "g"}),
		},
		"a larger size merges groups": {
			number(3), func(w *world) { w.divide(number(9)) }, strs([]string{"c", "d", "e", "f", "g"}),
		},
		"a size for which they suffice does not": {
			number(3), func(w *world) { w.divide(number(4)) }, strs([]string{"c", "d", "e"}, []string{"f", "g"}),
		},
		"a smaller size cuts the groups that are too large": {
			number(3), func(w *world) { w.divide(number(2)) }, strs([]string{"c", "d"}, []string{"f", "g"}, []string{"e"}),
		},
		"a share of a fleet that grows lets groups grow": {
			percent(50), func(w *world) { w.add("", "a", "b", "h") }, strs([]string{"a", "c", "d", "e"}, []string{"b", "f", "g", "h"}),
		},
		"a named group takes its clusters along": {
			number(3), func(w *world) { w.divide(number(3), "new"); w.add("new", "d", "x") },
			strs([]string{"d", "x"}, []string{"c", "e"}, []string{"f", "g"}),
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(tc.size)
			w.add("", "c", "d", "e", "f", "g")
			w.settle(t)
			tc.change(w)
			w.settle(t)
			assert.Equal(t, tc.want, w.groups(t))
		})
	}
}

func TestARenamedGroupKeepsItsDecisions(t *testing.T) {
	w := newWorld(number(100), "early")
	w.add("early", clusters(0, 10)...)
	w.add("", clusters(10, 20)...)
	w.settle(t)
	before := union([]*clusterv1beta1.PlacementDecision{w.have["p-decision-1"]})
	w.spec.DecisionStrategy.GroupStrategy.DecisionGroups[0].GroupName = "first"
	assert.Equal(t, []string{"0 first 10 1", "1  10 1"}, status(w.settle(t)))
	assert.Equal(t, before, union([]*clusterv1beta1.PlacementDecision{w.have["p-decision-1"]}))
	assert.Len(t, w.have, 2)
}

func TestLabelsThatSomebodyChangedAreRepaired(t *testing.T) {
	w := newWorld(number(2))
	w.add("", "a", "b", "c")
	w.settle(t)
	before := w.groups(t)
	for _, o := range w.have {
		o.Labels = map[string]string{names.LabelDecisionGroupIndex: "7", names.LabelDecisionGroupName: "odd"}
	}
	w.settle(t)
	assert.Equal(t, before, w.groups(t))
}

func TestDecisionsOfAnotherControllerKeepTheirGroups(t *testing.T) {
	w := newWorld(number(2), "canary")
	w.add("canary", "a", "b")
	w.add("", "c", "d", "e")
	for i, decided := range [][]string{{"b"}, {"a"}, {"c", "e"}, {"d"}} {
		o := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Name: sliceName(i + 1), Namespace: "ns", Labels: map[string]string{
				names.LabelPlacement: "p", names.LabelDecisionGroupIndex: strconv.Itoa(i),
				names.LabelDecisionGroupName: []string{"canary", "canary", "", ""}[i],
			},
		}}
		o.Status.Decisions = decisions(decided...)
		w.have[o.Name] = o
	}
	w.settle(t)
	assert.Equal(t, strs([]string{"b"}, []string{"a"}, []string{"c", "e"}, []string{"d"}), w.groups(t))
}

func TestASizeThatIsNoneIsNamed(t *testing.T) {
	for _, size := range []intstr.IntOrString{number(-1), intstr.FromString("0%"), intstr.FromString("101%"), intstr.FromString("x")} {
		spec := clusterv1beta1.PlacementSpec{DecisionStrategy: clusterv1beta1.DecisionStrategy{
			GroupStrategy: clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: size},
		}}
		err := parse(spec, new(memory).compile).misconfigured
		require.ErrorContains(t, err, "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup "+strconv.Quote(size.String()))
	}
}

// FuzzGroups changes a fleet and its groups again and again, ends passes in the middle, and checks after each write
// that no cluster that stays is missing, and after each settled pass that groups are as the API describes them, that
// nobody moved without need, and that the order of the input does not count.
func FuzzGroups(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		rings := []string{"a", "b", "c"}
		sizes := []intstr.IntOrString{{}, number(1), number(3), number(120), percent(1), percent(10), percent(33), percent(100)}
		w := newWorld(sizes[random.IntN(len(sizes))], rings[:random.IntN(3)]...)
		most := 1 + random.IntN(260)
		for range 8 {
			divided := random.IntN(4) == 0
			if divided {
				w.divide(sizes[random.IntN(len(sizes))], rings[:random.IntN(4)]...)
			}
			before, moved := maps.Clone(w.rings), map[string]bool{}
			for _, name := range clusters(0, most) {
				switch random.IntN(8) {
				case 0:
					delete(w.rings, name)
				case 1:
					w.rings[name] = rings[random.IntN(len(rings))]
				}
				moved[name] = before[name] != w.rings[name]
			}
			w.check(t, random, !divided, moved)
		}
	})
}

// check settles the decisions with interruptions and checks what must hold. Clusters in moved may change their group.
func (w *world) check(t *testing.T, random *rand.Rand, steady bool, moved map[string]bool) {
	t.Helper()
	was := w.identities()
	for range 1 + random.IntN(3) {
		staying := slices.Collect(maps.Keys(w.where()))
		p := w.decide(t, random)
		assert.Equal(t, p.layout, w.decide(t, random).layout, "the order of the input does not count")
		for _, slice := range p.layout.Slices[:random.IntN(len(p.layout.Slices)+1)] {
			w.write(slice)
			now := w.where()
			for _, name := range staying {
				if _, selected := p.selection.groups[name]; selected {
					require.Contains(t, now, name)
				}
			}
		}
	}
	p := w.settle(t)
	limit := w.limit(t, len(w.rings))
	total := 0
	for i, members := range w.groups(t) {
		total += len(members)
		assert.LessOrEqual(t, len(members), limit)
		assert.Equal(t, len(members), int(p.layout.Groups[i].ClustersCount))
		assert.Equal(t, i, int(p.layout.Groups[i].DecisionGroupIndex))
	}
	is := w.identities()
	require.Len(t, is, len(w.rings), "each cluster is decided")
	require.Equal(t, len(w.rings), total, "once")
	for name, group := range is {
		if have := was[name]; steady && w.spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.StrVal == "" &&
			len(have) == 1 && !moved[name] {
			assert.Equal(t, have, group, "%s moved", name)
		}
	}
}

// limit returns the limit of a group.
func (w *world) limit(t *testing.T, total int) int {
	t.Helper()
	size, err := layout.ParseSize(w.spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup)
	require.NoError(t, err)
	return size.Of(total)
}

// TestIndexesHaveNoGapWhileGroupsAreAdded looks after each write at what a reader sees that takes indexes from 0 up to
// the first gap.
func TestIndexesHaveNoGapWhileGroupsAreAddedAndRemoved(t *testing.T) {
	w := newWorld(number(2), "a", "b")
	contiguous := func() {
		t.Helper()
		seen := map[int]bool{}
		for _, o := range w.have {
			seen[observedIndex(o)] = true
		}
		for i := range len(seen) {
			require.Contains(t, seen, i)
		}
	}
	for _, fleet := range []map[string]int{{"a": 4, "b": 3, "": 4}, {"a": 7, "b": 3, "": 4}, {"a": 7, "b": 9, "": 1}, {"a": 1, "b": 1, "": 1}, {"": 9}} {
		w.rings = map[string]string{}
		for ring, n := range fleet {
			for i := range n {
				w.add(ring, fmt.Sprintf("%s%d", ring, i))
			}
		}
		for _, slice := range w.decide(t, nil).layout.Slices {
			w.write(slice)
			contiguous()
		}
	}
}
