package placement

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
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
	// frozen reports whether the Placement is being deleted, or another scheduler is to take it over. orphaned reports
	// whether it is gone, and its decisions were left without an owner.
	frozen, orphaned bool
	// undecoded is why the Placement cannot be decoded; nil when it can.
	undecoded error
	// outside is since when clusters are outside of the sets that stay selected nevertheless.
	outside map[string]time.Time
	// unread are clusters that the API server has otherwise than the cache, and of which no more is known.
	unread map[string]bool
}

// plan is the decision about one Placement.
type plan struct {
	// misconfigured is what is wrong with the Placement, and frozen reports whether its decisions stay, for that or
	// another reason, but for clusters that it may not have any more.
	misconfigured error
	frozen        bool
	// outside is since when clusters are outside of the sets, of a frozen one.
	outside   map[string]time.Time
	scope     scope
	selection selection
	layout    layout.Layout
	// dropped are the clusters that are selected now and will not be.
	dropped []string
}

// longPass is from how many slices that are written, or clusters that are dropped, a pass may take long.
const longPass = 10

// length is how long carrying the plan out may take.
func (p plan) length() reconcile.Length {
	changed := 0
	for _, slice := range p.layout.Slices {
		if slice.Changed() {
			changed++
		}
	}
	if max(changed, len(p.dropped)) >= longPass {
		return reconcile.Long
	}
	return reconcile.Short
}

// decide returns the plan for one Placement. It is given what the Placement is interested in, which follows from the
// facts without the clusters.
func decide(f facts, in interest) plan {
	if in.misconfigured != nil || f.frozen {
		return narrow(f, in, in.misconfigured)
	}
	current := map[string]bool{}
	for _, o := range f.decisionSlices {
		for _, name := range addonapi.SelectedClusters(o) {
			current[name] = true
		}
	}
	chosen, err := selectClusters(f.placement.Spec, in, f.clusters, f.unread, current, f.now)
	if err != nil {
		return narrow(f, in, err)
	}
	planned := layout.Plan(layout.Request{
		Placement: f.placement, Groups: in.rules.groupNames(), Size: in.rules.size, Selected: chosen.groups,
		Have: f.decisionSlices, Taken: f.taken,
	})
	if len(chosen.unbound) == 0 {
		honour(planned.Slices)
	}
	maps.DeleteFunc(current, func(name string, _ bool) bool {
		_, stays := chosen.groups[name]
		return stays
	})
	return plan{
		scope: in.scope, selection: chosen, layout: planned, dropped: slices.Sorted(maps.Keys(current)),
	}
}

// honour marks slices whose clusters are all in bound sets.
func honour(planned []layout.Slice) {
	for _, p := range planned {
		if p.Want != nil {
			metav1.SetMetaDataAnnotation(&p.Want.ObjectMeta, names.AnnotationSetBindings, names.SetBindingsHonoured)
		}
	}
}
