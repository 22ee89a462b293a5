package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
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

// scope is the set of clusters that a Placement may select: those of the ManagedClusterSets that are bound to its
// namespace.
type scope struct {
	// sets are the names of the bound sets, ordered; members are the selectors of their clusters.
	sets    []string
	members []labels.Selector
	// labels are the keys of the labels that the selectors look at.
	labels map[string]bool
	// reason and message explain why no set is bound; empty when one is.
	reason, message string
	// earlier are clusters that were selected before bindings counted and are in no bound set. They stay selected.
	earlier map[string]bool
}

// scopeOf returns the scope of a Placement. The error names a set with an invalid selector.
func scopeOf(f facts) (scope, error) {
	s := scope{labels: map[string]bool{}}
	bound, odd := boundSets(f)
	asked := f.placement.Spec.ClusterSets
	for _, name := range bound {
		if len(asked) > 0 && !slices.Contains(asked, name) {
			continue
		}
		selector, err := clustersets.Selector(name, f.sets[name])
		if err != nil {
			return scope{}, err
		}
		s.sets, s.members = append(s.sets, name), append(s.members, selector)
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

// boundSets returns the existing sets that are bound to the namespace of the Placement, ordered by name, and what is
// wrong with the other bindings.
func boundSets(f facts) (bound, odd []string) {
	for _, binding := range f.bindings {
		name := binding.Spec.ClusterSet
		if !binding.DeletionTimestamp.IsZero() {
			continue
		}
		_, exists := f.sets[name]
		switch clustersets.StateOf(binding, exists) {
		case clustersets.AnotherName:
			odd = append(odd, fmt.Sprintf("binding %s does not have the name of its set %q", binding.Name, name))
		case clustersets.NotFound:
			odd = append(odd, fmt.Sprintf("ManagedClusterSet %s does not exist", name))
		case clustersets.Bound:
			bound = append(bound, name)
		}
	}
	slices.Sort(bound)
	slices.Sort(odd)
	return bound, odd
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
	return slices.ContainsFunc(s.members, func(m labels.Selector) bool { return m.Matches(labels.Set(cluster.Labels)) })
}

// covers reports whether a cluster, nil for one that does not exist, is in a bound set or may stay without one.
func (s scope) covers(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && (s.has(cluster) || s.earlier[cluster.Name])
}
