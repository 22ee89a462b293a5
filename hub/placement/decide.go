package placement

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// facts are the inputs of a decision about one Placement.
type facts struct {
	now       time.Time
	placement *clusterv1beta1.Placement
	// clusters are all clusters of the hub; they belong to the cache and must not be changed.
	clusters []*clusterv1.ManagedCluster
	// bindings are the ManagedClusterSetBindings in the namespace of the Placement; sets are all ManagedClusterSets by
	// name.
	bindings []*clusterv1beta2.ManagedClusterSetBinding
	sets     map[string]*clusterv1beta2.ManagedClusterSet
	// decisionSlices are the existing PlacementDecisions.
	decisionSlices []*clusterv1beta1.PlacementDecision
}

// plan is the decision about one Placement.
type plan struct {
	// misconfigured is what is wrong with the Placement; then nothing else is planned.
	misconfigured error
	scope         scope
	selection     selection
	// decisionSlices are all slices in the order in which they are written, including unchanged ones.
	decisionSlices []decisionSlice
}

// decide returns the plan for one Placement.
func decide(f facts) plan {
	if err := unsupported(f.placement.Spec); err != nil {
		return plan{misconfigured: err}
	}
	predicates, err := compile(f.placement.Spec)
	if err != nil {
		return plan{misconfigured: err}
	}
	bounds, err := scopeOf(f)
	if err != nil {
		return plan{misconfigured: err}
	}
	current := map[string]bool{}
	for _, o := range f.decisionSlices {
		for _, decision := range o.Status.Decisions {
			current[decision.ClusterName] = true
		}
	}
	chosen := selectClusters(f.placement.Spec, predicates, bounds, f.clusters, current, f.now)
	decisionSlices := planSlices(f.placement, chosen.names, f.decisionSlices)
	if len(chosen.unbound) == 0 {
		honour(decisionSlices)
	}
	return plan{scope: bounds, selection: chosen, decisionSlices: decisionSlices}
}
