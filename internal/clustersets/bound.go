package clustersets

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// BoundSets returns the names of the existing sets that bindings of a namespace bind, in order, and what is wrong with
// the other bindings. sets are all ManagedClusterSets by name.
func BoundSets(
	bindings []*clusterv1beta2.ManagedClusterSetBinding, sets map[string]*clusterv1beta2.ManagedClusterSet,
) (bound, odd []string) {
	for _, binding := range bindings {
		name := binding.Spec.ClusterSet
		if !binding.DeletionTimestamp.IsZero() {
			continue
		}
		_, exists := sets[name]
		switch StateOf(binding, exists) {
		case AnotherName:
			odd = append(odd, fmt.Sprintf("binding %s does not have the name of its set %q", binding.Name, name))
		case NotFound:
			odd = append(odd, fmt.Sprintf("ManagedClusterSet %s does not exist", name))
		case Bound:
			bound = append(bound, name)
		}
	}
	slices.Sort(bound)
	slices.Sort(odd)
	return bound, odd
}

// Members are the clusters of some sets, each by a selector of labels.
type Members []labels.Selector

// MembersOf returns the clusters of the named sets. The error names a set with an invalid selector.
func MembersOf(names []string, sets map[string]*clusterv1beta2.ManagedClusterSet) (Members, error) {
	var m Members
	for _, name := range names {
		selector, err := Selector(name, sets[name])
		if err != nil {
			return nil, err
		}
		m = append(m, selector)
	}
	return m, nil
}

// Has reports whether a cluster with some labels is in one of the sets.
func (m Members) Has(cluster map[string]string) bool {
	return slices.ContainsFunc(m, func(s labels.Selector) bool { return s.Matches(labels.Set(cluster)) })
}
