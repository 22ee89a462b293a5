package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts are the inputs of a decision about one Placement.
type facts struct {
	now time.Time
	// key names the Placement, and begun is the number of its pass.
	key       types.NamespacedName
	begun     uint64
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
	// misconfigured says what is wrong with the Placement, and frozen reports whether its decisions stay, for that or
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

// interest is what a Placement looks at in clusters: a change of a cluster that alters no verdict of it cannot alter a
// decision of the Placement, taints aside.
type interest struct {
	// misconfigured says what is wrong with the Placement or a set; then no cluster counts.
	misconfigured error
	// frozen reports whether the Placement is not decided for another reason. Then it matters only who leaves its sets.
	frozen bool
	rules  *rules
	scope  scope
	// bindings are the names of the sets that bindings in the namespace refer to, whether the sets exist or not.
	bindings []string
}

// verdict says what the selectors of a Placement say about a cluster. Verdicts can be compared.
type verdict struct {
	// inSets reports whether the cluster is in a bound set; unbound reports whether it is not, and stays selected
	// nevertheless (docs/adr/0018-placement.md).
	inSets, unbound bool
	outcome
}

// view is a cluster with what is derived from it on demand, for all Placements that look at it.
type view struct {
	cluster *clusterv1.ManagedCluster
	claims  labels.Set
	object  map[string]any
	// left is how much expressions may still cost where an event waits for them, in units of CEL; nil where none does.
	left *uint64
}

// subject is a cluster that the selectors of one Placement look at.
type subject struct {
	*view

	// cost is how much expressions have cost so far, in units of CEL.
	cost uint64
	// unasked is set by an expression that could not be evaluated while an event waits.
	unasked bool
}

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
	// unknown are the clusters that cannot be judged, are not selected, and have a place.
	unknown map[string]bool
	// wake is when the next toleration ends; zero when none does.
	wake time.Time
}

// failure is a cluster for which an expression has no result, with the cause.
type failure struct{ cluster, cause string }

// scope is the set of clusters that a Placement may select: those of the ManagedClusterSets that are bound to its
// namespace.
type scope struct {
	// sets are the names of the bound sets, ordered; members are the selectors of their clusters.
	sets    []string
	members clustersets.Members
	// all are the clusters of all bound sets, whichever the Placement asks for; known reports whether they are.
	all   clustersets.Members
	known bool
	// labels are the keys of the labels that the selectors look at.
	labels map[string]bool
	// reason and message explain why no set is bound; empty when one is.
	reason, message string
	// earlier are clusters that were selected before bindings counted and are in no bound set. They stay selected.
	earlier map[string]bool
}

// isUnknown reports whether only the metadata of a cluster are known, because it cannot be decoded; not of nil.
func isUnknown(cluster *clusterv1.ManagedCluster) bool {
	if cluster == nil {
		return false
	}
	_, unknown := decode.Unknown(cluster)
	return unknown
}
