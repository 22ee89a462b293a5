package placement

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// selection is the result of selecting clusters for a Placement.
type selection struct {
	// names are the selected clusters in the order of their names.
	names []string
	// unbound are those of them that are in no bound set.
	unbound []string
	// inSets is the number of clusters in bound sets.
	inSets int
	// matching is the number of clusters that match the predicates; eligible is the number of these whose taints are
	// tolerated.
	matching, eligible int
	// wake is when the next toleration ends; zero when none does.
	wake time.Time
}

// predicate is one alternative of a Placement: both selectors must match.
type predicate struct{ labels, claims labels.Selector }

// compile turns the predicates of a Placement into selectors. The error names the field that is wrong.
func compile(spec clusterv1beta1.PlacementSpec) ([]predicate, error) {
	all := make([]predicate, 0, len(spec.Predicates))
	for i, p := range spec.Predicates {
		byLabel, err := metav1.LabelSelectorAsSelector(&p.RequiredClusterSelector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.predicates[%d].requiredClusterSelector.labelSelector: %w", i, err)
		}
		byClaim, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
			MatchExpressions: p.RequiredClusterSelector.ClaimSelector.MatchExpressions,
		})
		if err != nil {
			return nil, fmt.Errorf("spec.predicates[%d].requiredClusterSelector.claimSelector: %w", i, err)
		}
		all = append(all, predicate{labels: byLabel, claims: byClaim})
	}
	for i, t := range spec.Tolerations {
		if err := checkToleration(t); err != nil {
			return nil, fmt.Errorf("spec.tolerations[%d]: %w", i, err)
		}
	}
	return all, nil
}

// selectClusters selects the clusters of a Placement; current are those that are selected already.
func selectClusters(
	spec clusterv1beta1.PlacementSpec, predicates []predicate, bounds scope, clusters []*clusterv1.ManagedCluster,
	current map[string]bool, now time.Time,
) selection {
	var s selection
	var kept, fresh []string
	unbound := map[string]bool{}
	for _, cluster := range clusters {
		if !cluster.DeletionTimestamp.IsZero() {
			continue
		}
		if bounds.has(cluster) {
			s.inSets++
		} else if unbound[cluster.Name] = bounds.earlier[cluster.Name]; !unbound[cluster.Name] {
			continue
		}
		if !matches(cluster, predicates) {
			continue
		}
		s.matching++
		tolerated, until := tolerates(spec.Tolerations, cluster.Spec.Taints, current[cluster.Name], now)
		if !tolerated {
			continue
		}
		s.eligible++
		s.wake = reconcile.Earliest(s.wake, until)
		if current[cluster.Name] {
			kept = append(kept, cluster.Name)
		} else {
			fresh = append(fresh, cluster.Name)
		}
	}
	slices.Sort(kept)
	slices.Sort(fresh)
	s.names = slices.Concat(kept, fresh)
	if n := spec.NumberOfClusters; n != nil {
		s.names = s.names[:min(len(s.names), max(int(*n), 0))]
	}
	slices.Sort(s.names)
	for _, name := range s.names {
		if unbound[name] {
			s.unbound = append(s.unbound, name)
		}
	}
	return s
}

// matches reports whether a cluster matches one of the predicates; without predicates it does.
func matches(cluster *clusterv1.ManagedCluster, predicates []predicate) bool {
	if len(predicates) == 0 {
		return true
	}
	claims := make(labels.Set, len(cluster.Status.ClusterClaims))
	for _, claim := range cluster.Status.ClusterClaims {
		claims[claim.Name] = claim.Value
	}
	return slices.ContainsFunc(predicates, func(p predicate) bool {
		return p.labels.Matches(labels.Set(cluster.Labels)) && p.claims.Matches(claims)
	})
}
