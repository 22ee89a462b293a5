package layout

import (
	"slices"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Narrow returns the layout that is there, with its decision groups, without the clusters that leave. All that stays is
// where it was, on a PlacementDecision without any cluster, too.
func Narrow(
	have []*clusterv1beta1.PlacementDecision, groups []clusterv1beta1.DecisionGroupStatus,
	leaves func(cluster string) bool,
) Layout {
	l := Layout{Groups: slices.Clone(groups)}
	count := map[string]int{}
	gone := func(d clusterv1beta1.ClusterDecision) bool { return leaves(d.ClusterName) }
	for _, page := range have {
		want := page
		if slices.ContainsFunc(page.Status.Decisions, gone) {
			want = page.DeepCopy()
			want.Status.Decisions = slices.DeleteFunc(want.Status.Decisions, gone)
		}
		count[page.Name] = len(want.Status.Decisions)
		l.Slices = append(l.Slices, Slice{Have: page, Want: want, list: want.Status.Decisions})
	}
	for i, group := range l.Groups {
		l.Groups[i].ClustersCount = 0
		for _, page := range group.Decisions {
			l.Groups[i].ClustersCount += int32(count[page]) //nolint:gosec // a page has fewer than an int32 can count
		}
	}
	return l
}
