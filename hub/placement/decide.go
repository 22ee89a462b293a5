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
	// rules are the parsed selectors of the Placement.
	rules *rules
	// clusters are all clusters of the hub; they belong to the cache and must not be changed.
	clusters []*clusterv1.ManagedCluster
	// bindings are the ManagedClusterSetBindings in the namespace of the Placement; sets are all ManagedClusterSets by
	// name.
	bindings []*clusterv1beta2.ManagedClusterSetBinding
	sets     map[string]*clusterv1beta2.ManagedClusterSet
	// decisionSlices are the existing PlacementDecisions; they belong to the cache and must not be changed.
	decisionSlices []*clusterv1beta1.PlacementDecision
	// taken are the names of the other PlacementDecisions in the namespace.
	taken []string
}

// plan is the decision about one Placement.
type plan struct {
	// misconfigured is what is wrong with the Placement; then nothing else is planned.
	misconfigured error
	scope         scope
	selection     selection
	layout        layout
}

// decide returns the plan for one Placement. It is given what the Placement is interested in, which follows from the
// facts without the clusters.
func decide(f facts, in interest) plan {
	if in.misconfigured != nil {
		return plan{misconfigured: in.misconfigured}
	}
	current := map[string]bool{}
	for _, o := range f.decisionSlices {
		for _, decision := range o.Status.Decisions {
			current[decision.ClusterName] = true
		}
	}
	chosen, err := selectClusters(f.placement.Spec, in, f.clusters, current, f.now)
	if err != nil {
		return plan{misconfigured: err}
	}
	planned := planLayout(f.placement, in.rules, chosen, f.decisionSlices, f.taken)
	if len(chosen.unbound) == 0 {
		honour(planned.slices)
	}
	return plan{scope: in.scope, selection: chosen, layout: planned}
}
