package placement

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

const setDefault, setGlobal = clustersets.Default, clustersets.Global

// sliceSize is the number of clusters that a PlacementDecision has at most.
const sliceSize = 100

func placement() *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid", Generation: 7}}
}

func sliceName(number int) string { return fmt.Sprintf("p-decision-%d", number) }

// written are the slices that are there after a plan was carried out.
func written(decisionSlices []layout.Slice) []*clusterv1beta1.PlacementDecision {
	var all []*clusterv1beta1.PlacementDecision
	for _, p := range decisionSlices {
		if p.Want != nil {
			all = append(all, p.Want)
		}
	}
	return all
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

func decisions(clusters ...string) []clusterv1beta1.ClusterDecision {
	var list []clusterv1beta1.ClusterDecision
	for _, name := range clusters {
		list = append(list, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	return list
}

// observedIndex is the index in the label of a slice, -1 without one.
func observedIndex(o *clusterv1beta1.PlacementDecision) int {
	index, err := strconv.Atoi(o.Labels[names.LabelDecisionGroupIndex])
	if err != nil {
		return -1
	}
	return index
}
