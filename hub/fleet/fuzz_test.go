package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// cutIntoPages cuts an ordered list of clusters into pages of a size, as other placement controllers do.
func cutIntoPages(clusters []string, size int) []*clusterv1beta1.PlacementDecision {
	var pages []*clusterv1beta1.PlacementDecision
	for part := range slices.Chunk(clusters, size) {
		pages = append(pages, pageOf(len(pages)+1, part...))
	}
	return pages
}

// FuzzAClusterThatStaysIsNotUnselectedBetweenTwoWrites reads decisions while another placement controller rewrites them
// page by page, in any order: a cluster that is selected before and afterwards does not count as unselected after a
// quiet period alone, wherever the controller stops.
func FuzzAClusterThatStaysIsNotUnselectedBetweenTwoWrites(f *testing.F) {
	f.Add([]byte{3, 3, 2, 3, 1, 3}, uint8(2), uint64(1))
	f.Add([]byte{2, 2, 2, 3, 3, 3, 3, 1, 1}, uint8(3), uint64(2))
	f.Add([]byte{1, 3, 1, 3, 1, 3, 1, 3, 3, 3, 3}, uint8(1), uint64(3))
	f.Fuzz(func(t *testing.T, members []byte, most uint8, order uint64) {
		size := 1 + int(most)%9
		var before, after, both []string
		for i, m := range members[:min(len(members), 200)] {
			name := fmt.Sprintf("c%04d", i)
			if m&1 != 0 {
				before = append(before, name)
			}
			if m&2 != 0 {
				after = append(after, name)
			}
			if m&3 == 3 {
				both = append(both, name)
			}
		}
		placement := decided().placement
		placement.Status = clusterv1beta1.PlacementStatus{}
		placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(int32(size))
		old, fresh := cutIntoPages(before, size), cutIntoPages(after, size)
		pages := map[int]*clusterv1beta1.PlacementDecision{}
		for i, page := range old {
			pages[i] = page
		}
		for version, i := range rand.New(rand.NewPCG(order, 1)).Perm(max(len(old), len(fresh))) {
			if delete(pages, i); i < len(fresh) {
				pages[i] = fresh[i].DeepCopy()
				pages[i].ResourceVersion = fmt.Sprint(version)
			}
			checkBetweenWrites(t, placement, pages, both)
		}
	})
}

// checkBetweenWrites checks what follows from the pages that are there at one instant.
func checkBetweenWrites(
	t *testing.T, placement *clusterv1beta1.Placement, at map[int]*clusterv1beta1.PlacementDecision, stay []string,
) {
	t.Helper()
	var pages []*clusterv1beta1.PlacementDecision
	selected := sets.New[string]()
	for _, page := range at {
		pages = append(pages, page)
		for _, decision := range page.Status.Decisions {
			selected.Insert(decision.ClusterName)
		}
	}
	d := NewDecisions(Seen{Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: placement, Pages: pages}, noon())
	for _, name := range stay {
		assert.Equal(t, selected.Has(name), d.Selects(name))
		if selected.Has(name) {
			continue
		}
		_, err := d.Unselected(name, noon().Add(FailoverPeriod-time.Second))
		require.Error(t, err, "cluster %s, between %v", name, selected)
	}
	if len(pages) > 0 {
		_, err := d.Unselected("x", noon().Add(FailoverPeriod))
		assert.NoError(t, err, "a decision comes in the end")
	}
}
