package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	reasonNoBindings     = "NoManagedClusterSetBindings"
	reasonNoIntersection = "NoIntersection"
	reasonEmptySets      = "AllManagedClusterSetsEmpty"
)

// scopeOf returns the scope of a Placement. The error names a set with an invalid selector.
func scopeOf(f facts) (scope, error) {
	s := scope{labels: map[string]bool{}}
	bound, odd := clustersets.BoundSets(f.bindings, f.sets)
	if all, err := clustersets.MembersOf(bound, f.sets); err == nil {
		s.all, s.known = all, true
	}
	asked := f.placement.Spec.ClusterSets
	for _, name := range bound {
		if len(asked) > 0 && !slices.Contains(asked, name) {
			continue
		}
		s.sets = append(s.sets, name)
	}
	var err error
	if s.members, err = clustersets.MembersOf(s.sets, f.sets); err != nil {
		return scope{}, err
	}
	for _, selector := range s.members {
		maps.Copy(s.labels, keysOf(selector))
	}
	if len(s.sets) == 0 {
		s.reason, s.message = noSet(f.placement, bound, odd)
	}
	if grandfathered(f) {
		s.earlier = map[string]bool{}
		for _, decisionSlice := range f.decisionSlices {
			for _, name := range addonapi.SelectedClusters(decisionSlice) {
				s.earlier[name] = true
			}
		}
	}
	return s, nil
}

// noSet explains why a Placement can select nothing, with a remedy.
func noSet(placement *clusterv1beta1.Placement, bound, odd []string) (reason, message string) {
	if len(bound) > 0 {
		return reasonNoIntersection, fmt.Sprintf("None of the ManagedClusterSets in spec.clusterSets (%s) is bound to "+
			"namespace %s; bound are %s. Bind one of them, or change spec.clusterSets",
			strings.Join(placement.Spec.ClusterSets, ", "), placement.Namespace, strings.Join(bound, ", "))
	}
	message = fmt.Sprintf("No ManagedClusterSet is bound to namespace %s, so the placement selects nothing. Create a "+
		"ManagedClusterSetBinding there; for all clusters it has the name global and spec.clusterSet: global",
		placement.Namespace)
	if len(odd) > 0 {
		message += ". Of the bindings that there are: " + strings.Join(odd, "; ")
	}
	return reasonNoBindings, message
}

// grandfathered reports whether a version of this controller that required no bindings made the decisions, and nobody
// has requested since that only bound sets count.
func grandfathered(f facts) bool {
	if f.placement.Annotations[names.AnnotationSetBindings] == names.SetBindingsHonoured {
		return false
	}
	return slices.ContainsFunc(f.decisionSlices, func(decisionSlice *clusterv1beta1.PlacementDecision) bool {
		_, ours := decisionSlice.Annotations[names.AnnotationStickyPages]
		return ours && !fleet.IsOver(decisionSlice) &&
			decisionSlice.Annotations[names.AnnotationSetBindings] != names.SetBindingsHonoured
	})
}

// has reports whether a cluster is in a bound set.
func (s scope) has(cluster *clusterv1.ManagedCluster) bool {
	return s.members.Has(cluster.Labels)
}

// allows reports whether a cluster is in a set that is bound to the namespace, or may stay without one, or that is not
// known.
func (s scope) allows(cluster *clusterv1.ManagedCluster) bool {
	return !s.known || s.all.Has(cluster.Labels) || s.earlier[cluster.Name]
}

// covers reports whether a cluster, nil for one that does not exist, is in a bound set or may stay without one.
func (s scope) covers(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && (s.has(cluster) || s.earlier[cluster.Name])
}
