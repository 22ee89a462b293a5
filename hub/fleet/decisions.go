package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// QuietPeriod is how long the decisions of a Placement must be unchanged before a cluster that they do not name counts
	// as unselected. A hub manager that was just started decides again within it what changed while it was away.
	QuietPeriod = 3 * time.Second
	// FailoverPeriod takes the place of QuietPeriod where a cluster may be about to move to a PlacementDecision of another
	// placement controller that is not written yet. One that stops between two writes is replaced within it.
	FailoverPeriod = 5 * time.Minute
	// pageSize is the most clusters that one PlacementDecision has.
	pageSize = 100
)

// Decisions is what is known about the decisions of one Placement. It is built once for each change of them, and never
// changed.
type Decisions struct {
	// Key is the key of the Placement, and Placement is nil when it does not exist. It belongs to the cache and must not
	// be changed.
	Key       types.NamespacedName
	Placement *clusterv1beta1.Placement
	// Groups are the selected clusters with their decision groups, and Names are they in order.
	Groups map[string]Group
	Names  []string
	// Written is when a PlacementDecision was last written, by the clock of the API server.
	Written time.Time
	// Own reports whether our own placement decided, and all of it is there.
	Own bool
	// Incomplete is why a cluster that the PlacementDecisions do not name may be selected; nil when they are complete.
	Incomplete error
	// Unfit is why no cluster is unselected because of these decisions: they are not complete, or not those about the
	// present Placement; nil when they are.
	Unfit error

	// DoubtedSince is since when it has been uncertain, in whatever states, which clusters are selected; zero when that is
	// certain.
	DoubtedSince time.Time

	// state identifies the present state of Placement and PlacementDecisions, and said what the Placement says about it.
	state, said string
	// since is when this process first saw state, and scoped, for our own placement, what people decide about it, which
	// scope identifies. dropped is when it first saw that our own placement does not select a cluster any more; of those
	// that it dropped a minute ago, nothing is remembered.
	since, scoped time.Time
	scope         string
	dropped       map[string]time.Time
	// left are the clusters that another placement controller selected before it changed its decisions, with their groups.
	left map[string]Group
	// period is how long state must stay.
	period time.Duration
	// moved is why decisions that changed a moment ago are not trusted.
	moved error
}

// Group is a decision group; its index is negative when the decision has none.
type Group struct {
	Index int
	Name  string
}

// Seen holds what was read about a Placement.
type Seen struct {
	// Key names it.
	Key types.NamespacedName
	// Placement is nil where it does not exist.
	Placement *clusterv1beta1.Placement
	// Pages are its PlacementDecisions.
	Pages []*clusterv1beta1.PlacementDecision
	// Own reports whether this hub manager schedules Placements.
	Own bool
	// Before holds what was known earlier; nil when nothing was.
	Before *Decisions
}

// NewDecisions returns what follows from a Placement at an instant.
func NewDecisions(seen Seen, now time.Time) *Decisions {
	placement, pages, before := seen.Placement, seen.Pages, seen.Before
	slices.SortFunc(pages, byName)
	own := seen.Own && placement != nil && !IsScheduledByOthers(placement)
	written := lastWritten(pages)
	if own {
		pages = slices.DeleteFunc(pages, IsOver)
	}
	state, said := versionOf(placement, pages), ""
	if placement != nil {
		state = fmt.Sprintf("%s@%d %t %s", state, placement.Generation, IsScheduledByOthers(placement),
			placement.Annotations[names.AnnotationSetBindings])
		for _, c := range placement.Status.Conditions {
			state += fmt.Sprintf(" %s@%d", c.Type, c.ObservedGeneration)
			said += fmt.Sprintf("%s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if before != nil && before.state == state && before.said == said {
		return before
	}
	d := &Decisions{
		Key: seen.Key, Placement: placement, state: state, said: said, period: FailoverPeriod,
		Groups: map[string]Group{}, Written: written,
		moved: fmt.Errorf("the decisions of placement %s were changed a moment ago", seen.Key),
	}
	for _, page := range pages {
		of := groupOf(page)
		for _, decision := range page.Status.Decisions {
			d.Groups[decision.ClusterName] = of
		}
	}
	d.Names = slices.Sorted(maps.Keys(d.Groups))
	d.Own = own
	d.remember(before, now)
	d.Incomplete = d.incompleteness(pages)
	d.Unfit = d.unfitness()
	if d.doubt() != nil {
		if d.DoubtedSince = now; before != nil && !before.DoubtedSince.IsZero() {
			d.DoubtedSince = before.DoubtedSince
		}
	}
	if d.Own = d.Own && d.Incomplete == nil; d.Own || hasRoom(placement, pages) {
		d.period = QuietPeriod
	}
	return d
}

// IsOver reports whether a PlacementDecision is being deleted, and empty: our placement decided without it, and a
// finalizer of another client keeps it.
func IsOver(page *clusterv1beta1.PlacementDecision) bool {
	return page.DeletionTimestamp != nil && len(page.Status.Decisions) == 0
}

// lastWritten returns when any of some PlacementDecisions was last written.
func lastWritten(pages []*clusterv1beta1.PlacementDecision) time.Time {
	var last time.Time
	for _, page := range pages {
		if at := LastWritten(page); at.After(last) {
			last = at
		}
	}
	return last
}

// groupOf returns the decision group of a PlacementDecision.
func groupOf(page *clusterv1beta1.PlacementDecision) Group {
	index, err := strconv.Atoi(page.Labels[names.LabelDecisionGroupIndex])
	if err != nil || index < 0 {
		index = -1
	}
	return Group{Index: index, Name: page.Labels[names.LabelDecisionGroupName]}
}

// versionOf identifies what is decided: each PlacementDecision with its version, and what the status of the Placement
// reports about them.
func versionOf(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) string {
	var b strings.Builder
	if placement != nil {
		s := placement.Status
		fmt.Fprintf(&b, "%s %t %d", placement.UID, placement.DeletionTimestamp.IsZero(), s.NumberOfSelectedClusters)
		for _, group := range s.DecisionGroups {
			fmt.Fprintf(&b, " %d:%v:%d", group.DecisionGroupIndex, group.Decisions, group.ClustersCount)
		}
		fmt.Fprintf(&b, " %t", misconfigured(placement) != nil)
		if mark := markOf(placement); mark != nil {
			b.WriteString(mark.Message)
		}
	}
	for _, page := range pages {
		fmt.Fprintf(&b, "\n%s %s %s", page.Name, page.UID, page.ResourceVersion)
	}
	return b.String()
}

// Selects reports whether a cluster is among the decisions.
func (d *Decisions) Selects(cluster string) bool { _, selected := d.Groups[cluster]; return selected }

// incompleteness returns why a cluster that the PlacementDecisions do not name may be selected.
//
// A Placement without a status is believed when it has decisions. Without any it looks like one that was created again
// a moment ago, whose first PlacementDecision is always empty. Our own always has a status, with the mark; only one
// that is misconfigured since an earlier version decided it has none, and keeps what that decided.
func (d *Decisions) incompleteness(pages []*clusterv1beta1.PlacementDecision) error {
	if d.Placement == nil {
		return fmt.Errorf("placement %s does not exist; create it, or remove it from "+
			"spec.installStrategy.placements", d.Key)
	}
	if len(pages) == 0 {
		return fmt.Errorf("placement %s has no PlacementDecision", d.Key)
	}
	for _, page := range pages {
		if owner := metav1.GetControllerOf(page); owner != nil && owner.UID != d.Placement.UID {
			return fmt.Errorf("PlacementDecision %s belongs to an earlier Placement %s", page.Name, d.Key)
		}
	}
	mark := markOf(d.Placement)
	switch {
	case d.Own && mark != nil && mark.Message == contentOf(pages):
		return nil
	case d.Own && mark != nil:
		return d.orMisconfigured(
			fmt.Errorf("placement %s is writing its PlacementDecisions: they are not those that it decided", d.Key))
	case d.Own && misconfigured(d.Placement) == nil, len(d.Groups) == 0 && isSilent(d.Placement):
		return fmt.Errorf("placement %s has not decided yet; remove it from spec.installStrategy.placements to uninstall "+
			"what it selected", d.Key)
	case isSilent(d.Placement), IsScheduledByOthers(d.Placement):
		return nil
	}
	return d.orMisconfigured(d.disagreement(pages))
}

// orMisconfigured adds the cause to an error about pages, where there is one: nothing is written until it is mended.
func (d *Decisions) orMisconfigured(err error) error {
	if c := misconfigured(d.Placement); err != nil && c != nil {
		return fmt.Errorf("placement %s is misconfigured: %s (%w)", d.Key, c.Message, err)
	}
	return err
}

// disagreement returns how the status of the Placement and its PlacementDecisions differ.
func (d *Decisions) disagreement(pages []*clusterv1beta1.PlacementDecision) error {
	status := d.Placement.Status
	if len(d.Groups) != int(status.NumberOfSelectedClusters) {
		return fmt.Errorf("the decisions of placement %s name %d clusters, its status says %d%s",
			d.Key, len(d.Groups), status.NumberOfSelectedClusters, keptText(pages))
	}
	var grouped, present []string
	for _, group := range status.DecisionGroups {
		grouped = append(grouped, group.Decisions...)
	}
	for _, page := range pages {
		present = append(present, page.Name)
	}
	slices.Sort(grouped)
	if len(grouped) > 0 && !slices.Equal(grouped, present) {
		return fmt.Errorf("placement %s has the decisions %v, its status names %v%s", d.Key, present, grouped,
			keptText(pages))
	}
	return nil
}

// keptText names a page that counts for as long as finalizers keep it; it is empty without one.
func keptText(pages []*clusterv1beta1.PlacementDecision) string {
	for _, page := range pages {
		if page.DeletionTimestamp != nil {
			return fmt.Sprintf("; PlacementDecision %s is being deleted, and finalizers keep it: %s", page.Name,
				message.Cut(strings.Join(page.Finalizers, ", "), message.MaxCause))
		}
	}
	return ""
}

// unfitness returns why no cluster is unselected because of these decisions.
func (d *Decisions) unfitness() error {
	switch {
	case d.Incomplete != nil:
		return d.Incomplete
	case !d.Placement.DeletionTimestamp.IsZero():
		return fmt.Errorf("placement %s is being deleted; remove it from spec.installStrategy.placements to "+
			"uninstall what it selects", d.Key)
	case isSilent(d.Placement), IsScheduledByOthers(d.Placement):
		return nil
	}
	if c := misconfigured(d.Placement); c != nil {
		return fmt.Errorf("placement %s is misconfigured: %s", d.Key, c.Message)
	}
	if d.Own {
		return d.Edited()
	}
	var observed int64
	for _, c := range d.Placement.Status.Conditions {
		observed = max(observed, c.ObservedGeneration)
	}
	if observed != 0 && observed < d.Placement.Generation {
		return d.edited()
	}
	return nil
}

// Edited returns an error while our own placement has not looked at the present spec of a Placement. Its groups may be
// others then.
func (d *Decisions) Edited() error {
	if !d.Own {
		return nil
	}
	var observed int64
	for _, c := range []*metav1.Condition{markOf(d.Placement), misconfigured(d.Placement)} {
		if c != nil { // One that is misconfigured since an earlier version decided it has no mark.
			observed = max(observed, c.ObservedGeneration)
		}
	}
	if observed < d.Placement.Generation {
		return d.edited()
	}
	return nil
}

// Uncertain returns why it is uncertain which clusters a Placement selects, and until when that holds its own rollout
// up; zero for as long as it is so. One that does not exist is about to be created again, as GitOps tools do; later it
// selects none.
func (d *Decisions) Uncertain(now time.Time) (time.Time, error) {
	until, err := d.Doubted(now)
	switch {
	case d.Placement != nil:
		return time.Time{}, d.doubt()
	case until.IsZero():
		return time.Time{}, nil
	}
	return until, err
}

// Doubted returns why it is uncertain which clusters a Placement selects, and until when that holds others up; zero
// when it does so no more. Otherwise a user who may write a Placement could hold up those of others.
func (d *Decisions) Doubted(now time.Time) (time.Time, error) {
	err, until := d.doubt(), d.DoubtedSince.Add(FailoverPeriod)
	if err == nil || !now.Before(until) {
		return time.Time{}, err
	}
	return until, err
}

func (d *Decisions) doubt() error {
	if d.Incomplete != nil {
		return d.Incomplete
	}
	return d.Edited()
}

func (d *Decisions) edited() error {
	return fmt.Errorf("placement %s was edited and is not decided again yet", d.Key)
}

func markOf(placement *clusterv1beta1.Placement) *metav1.Condition {
	return meta.FindStatusCondition(placement.Status.Conditions, names.ConditionDecided)
}

// misconfigured returns the condition that says so; nil when the Placement is not.
func misconfigured(placement *clusterv1beta1.Placement) *metav1.Condition {
	c := meta.FindStatusCondition(placement.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// isSilent reports whether nobody wrote the status of a Placement.
func isSilent(placement *clusterv1beta1.Placement) bool {
	s := placement.Status
	return len(s.Conditions) == 0 && len(s.DecisionGroups) == 0 && s.NumberOfSelectedClusters == 0
}

// IsScheduledByOthers reports whether an annotation leaves a Placement to another scheduler.
func IsScheduledByOthers(placement metav1.Object) bool {
	return placement.GetAnnotations()[clusterv1beta1.PlacementDisableAnnotation] == "true"
}

// hasRoom reports whether all decisions are one PlacementDecision that every cluster fits into, so that none is about
// to move to another one. While a Placement is created again, the garbage collector may delete the first one of its
// earlier self after the other controller has written that and the next one, so the next one is alone for a moment.
func hasRoom(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) bool {
	if placement == nil || len(pages) != 1 || pages[0].Labels[names.LabelDecisionGroupName] != "" ||
		groupOf(pages[0]).Index > 0 {
		return false
	}
	if isSilent(placement) {
		if LastWritten(pages[0]).Before(placement.CreationTimestamp.Add(FailoverPeriod)) {
			return false
		}
	} else if int(placement.Status.NumberOfSelectedClusters) != len(pages[0].Status.Decisions) {
		return false
	}
	strategy := placement.Spec.DecisionStrategy.GroupStrategy
	perGroup, most := strategy.ClustersPerDecisionGroup, pageSize
	switch {
	case len(strategy.DecisionGroups) > 0, perGroup.StrVal != "" && perGroup.StrVal != "100%":
		return false
	case perGroup.IntVal > 0:
		most = min(most, int(perGroup.IntVal))
	}
	return len(pages[0].Status.Decisions) < most
}
