package install

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/gate"
)

// Limit is how many clusters may lose an add-on within fifteen minutes without an edit that explains it. A removal is
// held when it passes both numbers.
type Limit struct {
	// Percent is the share of the clusters that have the add-on; 0 holds nothing.
	Percent int
	// Clusters is a number of clusters.
	Clusters int
}

// exceeded reports whether the removal of an add-on from some of all clusters must be held.
func (l Limit) exceeded(removed, all int) bool {
	return l.Percent > 0 && removed > l.Clusters && removed*100 > l.Percent*all
}

// candidate is an add-on on a cluster that may be unselected.
type candidate struct {
	cluster string
	// addon is in the version of the wire; nil when it does not exist.
	addon client.Object
	// managed is the cluster; nil when it does not exist.
	managed *clusterv1.ManagedCluster
	absence absence
	// concerned are the Placements that matter for it, and fewer is when that may be fewer; set by decideRemovals.
	concerned []*fleet.Decisions
	fewer     time.Time
	// others is what the other add-ons on the cluster mean for it.
	others gate.Others
	// unread reports whether the add-on or the cluster cannot be decoded.
	unread bool
}

// counts reports whether the removal from a cluster counts for the limit. A cluster that is being deleted explains it.
func (c candidate) counts() bool {
	return c.unread || (c.managed != nil && c.managed.DeletionTimestamp.IsZero())
}

// fleetFacts are the inputs of the decision about the removal of one add-on from clusters.
type fleetFacts struct {
	now time.Time
	// cma is in the version of the wire; nil when it does not exist.
	cma client.Object
	// last is the number of the last note before the decisions were read: what was noted later may be newer than they.
	last uint64
	// own reports whether our placement decides, unless others do.
	own bool
	// placements are the decisions of the listed placements, and ids the idOf each.
	placements []*fleet.Decisions
	ids        map[*fleet.Decisions]string
	// undecided are those of our placement that are being decided, with the reason.
	undecided map[types.NamespacedName]fleet.Undecided
	// unjudged are the clusters of which our placement cannot tell whether one selects them.
	unjudged map[types.NamespacedName]map[string]bool
	// others is what policies say, and order which add-ons they order.
	others dependencyFacts
	order  gate.Order
	// candidates are in the order of their clusters.
	candidates []candidate
	// size is on how many clusters placements installed the add-on; 0 when the limit cannot be reached.
	size int
	// recent is from how many clusters it was removed lately without an edit that explains it, by minute.
	recent map[string]int
	// intents are what people decide about each placement, by its idOf, and by wholeList which are listed.
	intents map[string]intent
	// bindings are those of the namespaces of the placements, and sets all ManagedClusterSets; the intents have both.
	// inSets are the clusters that follow from them, by namespace, where that is known.
	bindings map[string][]*clusterv1beta2.ManagedClusterSetBinding
	sets     map[string]*clusterv1beta2.ManagedClusterSet
	inSets   map[string]clustersets.Members
	// earlier are those whose decisions meant something once, as they were then.
	earlier map[types.NamespacedName]earlier
	state   removalState
	// held reports whether the removal from a cluster was held before this pass; set by decideRemovals.
	held  func(candidate) bool
	limit Limit
}

// removes reports whether the add-on is removed from clusters: where placements install it, or others bring it along.
func (f fleetFacts) removes() bool {
	return f.cma != nil && (addonapi.StrategyOf(f.cma).ByPlacements || f.others.brings)
}

// removals is the decision about the removal of one add-on from clusters.
type removals struct {
	// concerned are the Placements that matter for what is removed.
	concerned sets.Set[*fleet.Decisions]
	// scoped reports whether a Placement does not matter for a removal, as the sets of its namespace lack the cluster.
	scoped bool
	// remove are the add-ons to delete, and counted the clusters of those that count for the limit.
	remove  []candidate
	counted sets.Set[string]
	// relabel are the add-ons that no placement selects, and that others bring along.
	relabel []candidate
	// closed is why an add-on waits for its windows; nil where none does.
	closed *closedError
	// done are the clusters that need no further look.
	done []string
	// kept are the reasons why add-ons stay until something changes, without duplicates.
	kept []string
	// held are the clusters whose add-ons wait for a confirmation.
	held []string
	// confirmed reports whether a person just confirmed the removal.
	confirmed bool
	// annotations are the annotations of the ClusterManagementAddOn with our own ones.
	annotations map[string]string
	// wake is when to decide again; zero when an event starts the next pass.
	wake time.Time
}

// absence holds what this process saw of a cluster since it is unselected.
type absence struct {
	// number is that of the last note about the cluster.
	number uint64
	// noted is when the cluster was first seen unselected.
	noted time.Time
	// available is since when the cluster is available, by the clock of the hub; see memory.availableSince.
	available time.Time
	// reach identifies the Placements that may select the cluster, and apart is since when these are they.
	reach uint64
	apart time.Time
	// by are the ids of the Placements that this process saw drop the cluster, separated by spaces; unseen reports
	// whether it was unselected before.
	by     string
	unseen bool
	// dropped reports whether the decisions dropped the cluster while it was available.
	dropped bool
	// away reports whether the cluster was seen unavailable, and back is when it was first seen available after that.
	away bool
	back time.Time
	// follows reports whether this process saw the last of those go from the cluster that brought the add-on along there.
	follows bool
	// denied reports whether the hub did not accept the cluster, and accepted is when it was first seen accepted after
	// that.
	denied   bool
	accepted time.Time
}

// intent holds what people decide about a Placement, since when this process or an earlier one knows.
type intent struct {
	is    string
	since time.Time
}

// earlier is a Placement when its decisions meant something last: the clusters that were bound to its namespace, where
// that was known.
type earlier struct {
	uid     types.UID
	members clustersets.Members
	known   bool
	// foreign reports whether another scheduler decided, which may select from sets that are not bound.
	foreign bool
}

// removalState is the value of annotation removal-state: what must be known after a restart.
type removalState struct {
	// Intents identifies what people had decided about each listed Placement when all that followed from it was done, by
	// its key, and by wholeList which are listed. A difference is an edit, which explains the removals that it makes.
	Intents map[string]string `json:"intents,omitempty"`
	// Edits are the edits that are not done.
	Edits map[string]edit `json:"edits,omitempty"`
	// Recent is from how many clusters the add-on was removed lately without such an edit, by minute. It is left out while
	// these are few.
	Recent map[string]int `json:"recent,omitempty"`
	// Confirmed are the clusters from which a person confirmed the removal, until it is done; see digest.
	Confirmed string `json:"confirmed,omitempty"`
	// Held are the clusters whose removal waits for that.
	Held string `json:"held,omitempty"`
}

// edit is an edit that is known since an instant, in seconds: a process that starts does not take it for one of now.
type edit struct {
	To    string `json:"to"`
	Since int64  `json:"since"`
}
