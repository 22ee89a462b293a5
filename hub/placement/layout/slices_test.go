package layout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func placement() *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid", Generation: 7}}
}

// written are the pages that are there after a plan was carried out.
func written(decisionSlices []Slice) []*clusterv1beta1.PlacementDecision {
	var all []*clusterv1beta1.PlacementDecision
	for _, p := range decisionSlices {
		if p.Want != nil {
			all = append(all, p.Want)
		}
	}
	return all
}

// planSlices distributes clusters that are all in one decision group.
func planSlices(
	placement *clusterv1beta1.Placement, selected []string, have []*clusterv1beta1.PlacementDecision,
) []Slice {
	r := Request{Placement: placement, Size: Size{percent: 100}, Selected: map[string]int{}, Have: have}
	for _, name := range selected {
		r.Selected[name] = 0
	}
	return Plan(r).Slices
}

func union(decisionSlices []*clusterv1beta1.PlacementDecision) []string {
	all := []string{}
	for _, decisionSlice := range decisionSlices {
		for _, d := range decisionSlice.Status.Decisions {
			all = append(all, d.ClusterName)
		}
	}
	slices.Sort(all)
	return all
}

func clusters(from, to int) []string {
	list := []string{}
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("c%04d", i))
	}
	return list
}

func TestAPageIsNamedAndMarkedAsTheContractSays(t *testing.T) {
	decisionSlices := planSlices(placement(), []string{"a"}, nil)
	require.Len(t, decisionSlices, 1)
	want := decisionSlices[0].Want
	assert.Equal(t, "p-decision-1", want.Name)
	assert.Equal(t, "ns", want.Namespace)
	assert.Equal(t, map[string]string{
		names.LabelPlacement: "p", names.LabelDecisionGroupIndex: "0", names.LabelDecisionGroupName: "",
	}, want.Labels)
	owner := metav1.GetControllerOf(want)
	require.NotNil(t, owner)
	assert.Equal(t, "cluster.open-cluster-management.io/v1beta1", owner.APIVersion)
	assert.Equal(t, "Placement", owner.Kind)
	assert.Equal(t, types.UID("p-uid"), owner.UID)
	assert.Equal(t, []clusterv1beta1.ClusterDecision{{ClusterName: "a"}}, want.Status.Decisions)
}

func TestThereIsAPageEvenWithoutClusters(t *testing.T) {
	decisionSlices := planSlices(placement(), nil, nil)
	require.Len(t, decisionSlices, 1)
	assert.NotNil(t, decisionSlices[0].Want.Status.Decisions)
	again := planSlices(placement(), nil, written(decisionSlices))
	require.Len(t, again, 1)
	assert.False(t, again[0].Changed())
}

func TestPagesAreFilledAndWhatIsSettledIsLeftAlone(t *testing.T) {
	have := written(planSlices(placement(), clusters(0, 250), nil))
	require.Len(t, have, 3)
	for i, want := range []int{100, 100, 50} {
		assert.Len(t, have[i].Status.Decisions, want)
	}
	for _, p := range planSlices(placement(), clusters(0, 250), have) {
		assert.False(t, p.Changed())
	}
}

func TestACLusterThatLeavesChangesOnePage(t *testing.T) {
	have := written(planSlices(placement(), clusters(0, 250), nil))
	changed := 0
	for _, p := range planSlices(placement(), clusters(1, 250), have) {
		if p.Changed() {
			changed++
			assert.Equal(t, 1, p.number)
		}
	}
	assert.Equal(t, 1, changed)
}

func TestPagesOfSomebodyElseAreReplacedWithoutLosingAnyCluster(t *testing.T) {
	earlier := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: "p-decision-1", Namespace: "ns", Labels: map[string]string{names.LabelPlacement: "p"},
		OwnerReferences: []metav1.OwnerReference{{UID: "old", Controller: new(true)}},
	}}
	odd := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "p-decision-01", Namespace: "ns"}}
	odd.Status.Decisions = decisions([]string{"a"})
	decisionSlices := planSlices(placement(), []string{"a"}, []*clusterv1beta1.PlacementDecision{earlier, odd})
	require.Len(t, decisionSlices, 3)
	assert.Equal(t, "p-decision-2", decisionSlices[0].Want.Name, "the name of a page that is there is not taken")
	assert.Nil(t, decisionSlices[1].Want)
	assert.Nil(t, decisionSlices[2].Want)
}

func TestANameThatAnotherPageHasIsNotTaken(t *testing.T) {
	planned := Plan(Request{Placement: placement(), Taken: []string{"p-decision-1", "q-decision-2"}}).Slices
	require.Len(t, planned, 1)
	assert.Equal(t, "p-decision-2", planned[0].Want.Name)
}

func TestAClusterOnTwoPagesStaysOnTheFirst(t *testing.T) {
	have := written(planSlices(placement(), clusters(0, 150), nil))
	have[1].Status.Decisions = append(have[1].Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "c0000"})
	assert.Equal(t, clusters(0, 150), union(written(planSlices(placement(), clusters(0, 150), have))))
}

// FuzzNoReaderMissesAClusterThatStays changes the selection again and again and looks after each single write.
func FuzzNoReaderMissesAClusterThatStays(f *testing.F) {
	f.Add(uint64(1), 350)
	f.Add(uint64(2), 0)
	f.Add(uint64(3), 101)
	f.Fuzz(func(t *testing.T, seed uint64, most int) {
		if most < 0 || most > 500 {
			return
		}
		random := rand.New(rand.NewPCG(seed, 1))
		have := map[string]*clusterv1beta1.PlacementDecision{}
		list := func() []*clusterv1beta1.PlacementDecision {
			var all []*clusterv1beta1.PlacementDecision
			for _, decisionSlice := range have {
				all = append(all, decisionSlice)
			}
			return all
		}
		for range 6 {
			before := union(list())
			var want []string
			for _, name := range clusters(0, most) {
				if random.IntN(3) > 0 {
					want = append(want, name)
				}
			}
			for _, p := range planSlices(placement(), want, list()) {
				if p.Want != nil {
					have[p.Want.Name] = p.Want
					assert.LessOrEqual(t, len(p.Want.Status.Decisions), sliceSize)
				} else {
					delete(have, p.Have.Name)
				}
				now := union(list())
				for _, name := range before {
					if slices.Contains(want, name) {
						require.Contains(t, now, name)
					}
				}
			}
			require.ElementsMatch(t, want, union(list()))
			require.NotEmpty(t, have)
		}
	})
}
