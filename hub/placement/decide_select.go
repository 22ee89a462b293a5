package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// selection is the result of selecting clusters for a Placement.
type selection struct {
	// names are the selected clusters in the order of their names.
	names []string
	// groups are the indexes of the decision groups of the selected clusters, by name.
	groups map[string]int
	// unbound are those of them that are in no bound set.
	unbound []string
	// inSets is the number of clusters in bound sets.
	inSets int
	// matching is the number of clusters that match the predicates; eligible is the number of these whose taints are
	// tolerated.
	matching, eligible int
	// failures are the clusters for which an expression has no result, in the order of their names.
	failures []failure
	// wake is when the next toleration ends; zero when none does.
	wake time.Time
}

// failure is a cluster for which an expression has no result, with the cause.
type failure struct{ cluster, cause string }

// selectClusters selects the clusters of a Placement; current are those that are selected already. The error is about
// an expression that costs too much.
func selectClusters(
	spec clusterv1beta1.PlacementSpec, in interest, clusters []*clusterv1.ManagedCluster,
	current map[string]bool, now time.Time,
) (selection, error) {
	s := selection{groups: map[string]int{}}
	var kept, fresh []string
	unbound := map[string]bool{}
	var cost uint64
	for _, cluster := range clusters {
		v := in.judge(cluster)
		if v.expensive != "" {
			return selection{}, fmt.Errorf("%s; that is so for ManagedCluster %s", v.expensive, cluster.Name)
		}
		if cost += v.cost; cost > maxFleetCost {
			return selection{}, errFleetCost()
		}
		if v.inSets {
			s.inSets++
		}
		if v.failure != "" {
			s.failures = append(s.failures, failure{cluster.Name, v.failure})
		}
		if !v.matches {
			continue
		}
		s.matching++
		tolerated, until := tolerates(spec.Tolerations, cluster.Spec.Taints, current[cluster.Name], now)
		if !tolerated {
			continue
		}
		s.eligible++
		s.wake = reconcile.Earliest(s.wake, until)
		s.groups[cluster.Name], unbound[cluster.Name] = v.group, v.unbound
		if current[cluster.Name] {
			kept = append(kept, cluster.Name)
		} else {
			fresh = append(fresh, cluster.Name)
		}
	}
	slices.Sort(kept)
	slices.Sort(fresh)
	slices.SortFunc(s.failures, func(a, b failure) int { return cmp.Compare(a.cluster, b.cluster) })
	s.take(slices.Concat(kept, fresh), spec.NumberOfClusters)
	for _, name := range s.names {
		if unbound[name] {
			s.unbound = append(s.unbound, name)
		}
	}
	return s, nil
}

// take selects the first clusters of a list, as many as there may be; nil is all.
func (s *selection) take(eligible []string, number *int32) {
	n := len(eligible)
	if number != nil {
		n = min(n, max(int(*number), 0))
	}
	for _, name := range eligible[n:] {
		delete(s.groups, name)
	}
	s.names = eligible[:n]
	slices.Sort(s.names)
}
