package placement

import (
	"cmp"
	"fmt"
	"slices"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// judgeAll returns the verdicts about clusters. What expressions cost for a cluster depends on what its agent writes,
// so the clusters that cost the most pay for an excess: those that cost more than an equal share do not fit, the most
// expensive first, until the others do. One for which the expressions cost too much anyway does not count for others.
// The error says that the expressions cost too much for most clusters, which is the fault of no agent; then the rest is
// not asked.
func judgeAll(
	judge func(*clusterv1.ManagedCluster) verdict, clusters []*clusterv1.ManagedCluster,
) ([]verdict, error) {
	verdicts := make([]verdict, len(clusters))
	share := maxFleetCost / uint64(max(len(clusters), 1))
	var spent, sum uint64
	var asked, above int
	for i, cluster := range clusters {
		v := judge(cluster)
		verdicts[i], spent = v, spent+v.cost
		if v.inSets || v.unbound {
			asked++
		}
		if v.cost > share {
			above++
		}
		if v.expensive == "" {
			sum += v.cost
		}
		if spent > maxFleetCost && 2*above > len(clusters) {
			break // so it is, whatever the rest costs
		}
	}
	if spent > maxFleetCost && 2*above > asked {
		return nil, errFleetCost()
	}
	chargeMost(clusters, verdicts, sum)
	return verdicts, nil
}

// chargeMost lets the most expensive clusters fail until the sum of the others is within the budget.
func chargeMost(clusters []*clusterv1.ManagedCluster, verdicts []verdict, sum uint64) {
	if sum <= maxFleetCost {
		return
	}
	order := make([]int, len(clusters))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(verdicts[b].cost, verdicts[a].cost), cmp.Compare(clusters[a].Name, clusters[b].Name))
	})
	for _, i := range order {
		v := &verdicts[i]
		if sum <= maxFleetCost {
			return
		}
		if v.expensive == "" {
			sum -= v.cost
			// Without figures: an agent that writes other claims all the time would change a message with each of them.
			v.expensive = fmt.Sprintf("%s; for this cluster they cost more than its share", errFleetCost())
		}
	}
}
