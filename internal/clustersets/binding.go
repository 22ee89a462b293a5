package clustersets

import clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

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
