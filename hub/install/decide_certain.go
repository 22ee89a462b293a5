package install

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// QuietPeriod is how long the decisions of a Placement must be unchanged before a cluster that they do not name counts
	// as unselected. Writers of several PlacementDecisions write them within fractions of a second.
	QuietPeriod = 3 * time.Second
	// FailoverPeriod takes the place of QuietPeriod for a cluster that may be about to move to a PlacementDecision that is
	// not written yet. A placement controller that stops between two writes is replaced by another one within it.
	FailoverPeriod = 5 * time.Minute
	// pageSize is the most clusters that one PlacementDecision has.
	pageSize = 100
)

// Decisions is what is known about the decisions of one Placement. It is built once for each change of them, and never
// changed.
type Decisions struct {
	key types.NamespacedName
	// placement is nil when it does not exist. It belongs to the cache and must not be changed.
	placement *clusterv1beta1.Placement
	// state identifies the present state of Placement and PlacementDecisions, and content the same without the generation
	// of the Placement.
	state, content string
	// since is when this process first saw state, and decided when it first saw content.
	since, decided time.Time
	// written is when a PlacementDecision was last written, by the clock of the API server.
	written time.Time
	// unfit is why the absence of a cluster means nothing; nil when it does.
	unfit error
	// moved is why decisions that changed a moment ago are not trusted.
	moved error
	// steady reports whether the writer never takes a cluster from one PlacementDecision before it is in another.
	steady   bool
	selected sets.Set[string]
	// spans are the first and last names of PlacementDecisions, in order; nil when they are not consecutive parts of one
	// ordered list.
	spans []span
	// overflows reports whether clusters after the last one may be about to move to a new PlacementDecision.
	overflows bool
}

type span struct{ first, last string }

// NewDecisions returns what follows from a Placement, which may be nil, and its PlacementDecisions at an instant. own
// reports whether this hub manager schedules Placements. before is what was known earlier; nil when nothing was.
func NewDecisions(
	key types.NamespacedName, placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision, own bool,
	now time.Time, before *Decisions,
) *Decisions {
	slices.SortFunc(pages, func(a, b *clusterv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) })
	content := contentOf(placement, pages)
	state := content
	if placement != nil {
		state = fmt.Sprintf("%s@%d", content, placement.Generation)
	}
	if before != nil && before.state == state {
		return before
	}
	d := &Decisions{
		key: key, placement: placement, state: state, content: content, since: now, decided: now,
		selected: sets.New[string](), moved: fmt.Errorf("the decisions of placement %s were changed a moment ago", key),
	}
	if before != nil && before.content == content {
		d.decided = before.decided
	}
	for _, page := range pages {
		for _, decision := range page.Status.Decisions {
			d.selected.Insert(decision.ClusterName)
		}
		if at := lastWritten(page); at.After(d.written) {
			d.written = at
		}
	}
	d.unfit = d.unfitness(pages)
	d.steady = own && placement != nil && isSteady(placement, pages)
	d.spans, d.overflows = spansOf(placement, pages)
	return d
}

// contentOf identifies the content of the decisions: each PlacementDecision with its version, and what the status of
// the Placement reports about them.
func contentOf(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) string {
	var b strings.Builder
	if placement != nil {
		s := placement.Status
		fmt.Fprintf(&b, "%s %t %d", placement.UID, placement.DeletionTimestamp.IsZero(), s.NumberOfSelectedClusters)
		for _, group := range s.DecisionGroups {
			fmt.Fprintf(&b, " %d:%v:%d", group.DecisionGroupIndex, group.Decisions, group.ClustersCount)
		}
		c := meta.FindStatusCondition(s.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
		fmt.Fprintf(&b, " %t", c != nil && c.Status == metav1.ConditionTrue)
	}
	for _, page := range pages {
		fmt.Fprintf(&b, "\n%s %s %s", page.Name, page.UID, page.ResourceVersion)
	}
	return b.String()
}

// Selects reports whether a cluster is among the decisions.
func (d *Decisions) Selects(cluster string) bool { return d.selected.Has(cluster) }

// Unselected returns why it is uncertain that a cluster which is not among the decisions is unselected, and the instant
// to check again, zero when an event starts the next pass. A nil error means that the cluster is unselected.
func (d *Decisions) Unselected(cluster string, now time.Time) (time.Time, error) {
	if d.unfit != nil {
		return time.Time{}, d.unfit
	}
	period := QuietPeriod
	if !d.steady && d.mayMove(cluster) {
		period = FailoverPeriod
	}
	// Nobody sees a write before it happened: a later time of writing is a difference between two clocks, of which a small
	// one counts.
	from := d.since
	if later := d.written.Sub(d.since); later > 0 && later <= QuietPeriod {
		from = d.written
	}
	if until := from.Add(period); now.Before(until) {
		return until, d.moved
	}
	return time.Time{}, nil
}

// mayMove reports whether a cluster that is not among the decisions may be on its way from one PlacementDecision to
// another. Placement controllers cut the ordered list of clusters into consecutive parts and write one part after the
// other. A cluster between the first and the last name of a part would be in that part, whatever the others are. Only
// at the border of two parts it may have left the one and not be in the other yet.
func (d *Decisions) mayMove(cluster string) bool {
	if d.spans == nil {
		return d.overflows
	}
	i, inside := slices.BinarySearchFunc(d.spans, cluster, func(s span, name string) int {
		switch {
		case s.last < name:
			return -1
		case s.first > name:
			return 1
		}
		return 0
	})
	switch {
	case inside, i == 0:
		return false
	case i == len(d.spans):
		return d.overflows
	}
	return true
}

// unfitness returns why the absence of a cluster from these PlacementDecisions means nothing.
func (d *Decisions) unfitness(pages []*clusterv1beta1.PlacementDecision) error {
	switch {
	case d.placement == nil:
		return fmt.Errorf("placement %s does not exist; create it, or remove it from "+
			"spec.installStrategy.placements", d.key)
	case !d.placement.DeletionTimestamp.IsZero():
		return fmt.Errorf("placement %s is being deleted; remove it from spec.installStrategy.placements to "+
			"uninstall what it selects", d.key)
	case len(pages) == 0:
		return fmt.Errorf("placement %s has no PlacementDecision", d.key)
	}
	for _, page := range pages {
		if owner := metav1.GetControllerOf(page); owner != nil && owner.UID != d.placement.UID {
			return fmt.Errorf("PlacementDecision %s belongs to an earlier Placement %s", page.Name, d.key)
		}
	}
	return d.disagreement(pages)
}

// disagreement returns how the status of the Placement and its decisions differ. A Placement without a status, or with
// scheduling disabled, does not count.
func (d *Decisions) disagreement(pages []*clusterv1beta1.PlacementDecision) error {
	status := d.placement.Status
	silent := len(status.Conditions) == 0 && len(status.DecisionGroups) == 0 && status.NumberOfSelectedClusters == 0
	if silent || isScheduledByOthers(d.placement) {
		return nil
	}
	if c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured); c != nil &&
		c.Status == metav1.ConditionTrue {
		return fmt.Errorf("placement %s is misconfigured: %s", d.key, c.Message)
	}
	var observed int64
	for _, c := range status.Conditions {
		observed = max(observed, c.ObservedGeneration)
	}
	if observed != 0 && observed < d.placement.Generation {
		return fmt.Errorf("placement %s was edited and is not decided again yet", d.key)
	}
	if len(d.selected) != int(status.NumberOfSelectedClusters) {
		return fmt.Errorf("the decisions of placement %s name %d clusters, its status says %d",
			d.key, len(d.selected), status.NumberOfSelectedClusters)
	}
	var grouped, names []string
	for _, group := range status.DecisionGroups {
		grouped = append(grouped, group.Decisions...)
	}
	for _, page := range pages {
		names = append(names, page.Name)
	}
	slices.Sort(grouped)
	if len(grouped) > 0 && !slices.Equal(grouped, names) {
		return fmt.Errorf("placement %s has the decisions %v, its status names %v", d.key, names, grouped)
	}
	return nil
}

func isScheduledByOthers(placement *clusterv1beta1.Placement) bool {
	return placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
}

// isSteady reports whether our own placement wrote the PlacementDecisions. The marks of a PlacementDecision alone are
// no proof: another placement controller that takes over the objects leaves them there. But it numbers and names the
// decision groups anew, so that the labels do not agree with the marks. Where there is one decision group, the
// annotation for it may be missing, as an earlier version wrote it.
func isSteady(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) bool {
	if isScheduledByOthers(placement) {
		return false
	}
	indexOf, groupOf := map[string]string{}, map[string]string{}
	for _, page := range pages {
		index, group := page.Labels[names.LabelDecisionGroupIndex], page.Annotations[names.AnnotationDecisionGroup]
		if page.Annotations[names.AnnotationStickyPages] != "true" {
			return false
		}
		if group == "" {
			if index != "" && index != "0" {
				return false
			}
			continue
		}
		name, _, _ := strings.Cut(group, "/")
		if name != page.Labels[names.LabelDecisionGroupName] {
			return false
		}
		if knownIndex, ok := indexOf[group]; ok && knownIndex != index {
			return false
		}
		if knownGroup, ok := groupOf[index]; ok && knownGroup != group {
			return false
		}
		indexOf[group], groupOf[index] = index, group
	}
	return true
}

// spansOf returns the first and last names of PlacementDecisions if these are consecutive parts of one ordered list,
// and whether clusters after the last name may be about to move to a new PlacementDecision.
func spansOf(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) ([]span, bool) {
	limit := capacity(placement)
	named := placement != nil && len(placement.Spec.DecisionStrategy.GroupStrategy.DecisionGroups) > 0
	spans := make([]span, 0, len(pages))
	last, full, filled := "", false, 0
	ordered := true
	for _, page := range pages {
		clusters := page.Status.Decisions
		named = named || page.Labels[names.LabelDecisionGroupName] != ""
		ordered = ordered && slices.IsSortedFunc(clusters, func(a, b clusterv1beta1.ClusterDecision) int {
			return strings.Compare(a.ClusterName, b.ClusterName)
		})
		if len(clusters) == 0 {
			continue
		}
		filled++
		s := span{clusters[0].ClusterName, clusters[len(clusters)-1].ClusterName}
		spans = append(spans, s)
		if s.last > last {
			last, full = s.last, len(clusters) >= limit
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return strings.Compare(a.first, b.first) })
	for i := 1; i < len(spans); i++ {
		ordered = ordered && spans[i-1].last < spans[i].first
	}
	switch {
	case named || (filled > 1 && !ordered):
		return nil, true // A cluster may move from anywhere to anywhere.
	case ordered:
		return spans, full
	}
	return nil, full
}

// capacity returns with how many clusters a PlacementDecision is full; 0 when that depends on their number.
func capacity(placement *clusterv1beta1.Placement) int {
	if placement == nil {
		return 0
	}
	perGroup := placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	switch {
	case perGroup.StrVal == "100%":
		return pageSize
	case perGroup.StrVal != "":
		return 0
	case perGroup.IntVal > 0:
		return min(pageSize, int(perGroup.IntVal))
	}
	return pageSize
}

// lastWritten returns when an object was last written, as far as the cache knows.
func lastWritten(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// TrimDecision is the cache transformation of PlacementDecisions. Of managedFields it keeps only the time of the last
// write, which shows whether decisions are being rewritten.
func TrimDecision(in any) (any, error) {
	o, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a transformation must pass on what it does not know
	}
	if len(o.GetManagedFields()) > 0 {
		at := metav1.NewTime(lastWritten(o))
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &at}})
	}
	return in, nil
}
