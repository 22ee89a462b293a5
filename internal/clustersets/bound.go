package clustersets

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/message"
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

// State says whether a ManagedClusterSetBinding counts for the Placements of its namespace.
type State int

const (
	// Bound means that Placements may select from the set.
	Bound State = iota
	// AnotherName means that the binding does not have the name of its set, and does not count.
	AnotherName
	// NotFound means that the set does not exist, and is none of those that need no object.
	NotFound
)

// StateOf returns the state of a binding; exists reports whether its set has an object.
func StateOf(binding *clusterv1beta2.ManagedClusterSetBinding, exists bool) State {
	set := binding.Spec.ClusterSet
	switch {
	case binding.Name != set:
		return AnotherName
	case !exists && set != Default && set != Global:
		return NotFound
	}
	return Bound
}

// Default and Global are the names of the sets that every hub has: the set of clusters that are in no other, and the
// set of all clusters. They exist even without an object.
const (
	Default = "default"
	Global  = "global"
)

// annotationAutoUpdate is the annotation of OCM that leaves the selector of Default or Global to its users, with the
// value "false".
const annotationAutoUpdate = "cluster.open-cluster-management.io/autoupdate"

// Kept returns the selector that the hub manager keeps for a set, whatever its object says; false for one that has the
// selector of its object. set is nil for one that exists without an object.
func Kept(name string, set *clusterv1beta2.ManagedClusterSet) (clusterv1beta2.ManagedClusterSelector, bool) {
	if set != nil && set.Annotations[annotationAutoUpdate] == "false" {
		return clusterv1beta2.ManagedClusterSelector{}, false
	}
	switch name {
	case Default:
		return clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}, true
	case Global:
		return clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
		}, true
	}
	return clusterv1beta2.ManagedClusterSelector{}, false
}

// Selector returns the selector of the clusters of a set; set is nil for one that exists without an object. The error
// names the set and the field that is wrong.
func Selector(name string, set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	how, kept := Kept(name, set)
	if !kept && set != nil {
		how = set.Spec.ClusterSelector
	}
	switch how.SelectorType {
	case "", clusterv1beta2.ExclusiveClusterSetLabel:
		return labels.SelectorFromSet(labels.Set{clusterv1beta2.ClusterSetLabel: name}), nil
	case clusterv1beta2.LabelSelector:
		selector, err := metav1.LabelSelectorAsSelector(how.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.labelSelector: %s", name,
				message.Cut(err.Error(), message.MaxCause))
		}
		return selector, nil
	}
	return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.selectorType %q is unknown", name, how.SelectorType)
}
