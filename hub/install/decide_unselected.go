package install

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// quietPeriod is how long PlacementDecisions that are not written atomically must be unchanged to be trusted. Writers
// that move clusters between them do so within fractions of a second; timestamps of the API server are whole seconds.
const quietPeriod = 3 * time.Second

// placementFacts are the facts about one Placement of an install strategy.
type placementFacts struct {
	key types.NamespacedName
	// placement is nil when it does not exist.
	placement *clusterv1beta1.Placement
	// decisions are its PlacementDecisions; they belong to the cache and must not be changed.
	decisions []*clusterv1beta1.PlacementDecision
}

// selects reports whether a cluster is among the decisions.
func (p placementFacts) selects(cluster string) bool {
	return slices.ContainsFunc(p.decisions, func(decision *clusterv1beta1.PlacementDecision) bool {
		return slices.ContainsFunc(decision.Status.Decisions, func(d clusterv1beta1.ClusterDecision) bool {
			return d.ClusterName == cluster
		})
	})
}

// uncertain returns why it is uncertain that a cluster which is not among the decisions is unselected, and the instant
// to check again, zero when an event starts the next pass. A nil error means that the cluster is unselected.
func (p placementFacts) uncertain(now time.Time) (time.Time, error) {
	switch {
	case p.placement == nil:
		return time.Time{}, fmt.Errorf("placement %s does not exist; create it, or remove it from "+
			"spec.installStrategy.placements", p.key)
	case !p.placement.DeletionTimestamp.IsZero():
		return time.Time{}, fmt.Errorf("placement %s is being deleted; remove it from spec.installStrategy.placements to "+
			"uninstall what it selects", p.key)
	case len(p.decisions) == 0:
		return time.Time{}, fmt.Errorf("placement %s has no PlacementDecision", p.key)
	}
	sticky := true
	var written time.Time
	for _, decision := range p.decisions {
		if owner := metav1.GetControllerOf(decision); owner != nil && owner.UID != p.placement.UID {
			return time.Time{}, fmt.Errorf("PlacementDecision %s belongs to an earlier Placement %s", decision.Name, p.key)
		}
		sticky = sticky && decision.Annotations[names.AnnotationStickyPages] == "true"
		if at := lastWritten(decision); at.After(written) {
			written = at
		}
	}
	if err := p.disagreement(); err != nil {
		return time.Time{}, err
	}
	if until := written.Add(quietPeriod); len(p.decisions) > 1 && !sticky && now.Before(until) {
		return until, fmt.Errorf("the decisions of placement %s are being rewritten", p.key)
	}
	return time.Time{}, nil
}

// disagreement returns how the status of the Placement and its decisions differ. A Placement without a status, or with
// scheduling disabled, does not count.
func (p placementFacts) disagreement() error {
	status := p.placement.Status
	silent := len(status.Conditions) == 0 && len(status.DecisionGroups) == 0 && status.NumberOfSelectedClusters == 0
	if silent || p.placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true" {
		return nil
	}
	if c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured); c != nil &&
		c.Status == metav1.ConditionTrue {
		return fmt.Errorf("placement %s is misconfigured: %s", p.key, c.Message)
	}
	decided := map[string]bool{}
	for _, decision := range p.decisions {
		for _, d := range decision.Status.Decisions {
			decided[d.ClusterName] = true
		}
	}
	if len(decided) != int(status.NumberOfSelectedClusters) {
		return fmt.Errorf("the decisions of placement %s name %d clusters, its status says %d",
			p.key, len(decided), status.NumberOfSelectedClusters)
	}
	var grouped, names []string
	for _, group := range status.DecisionGroups {
		grouped = append(grouped, group.Decisions...)
	}
	for _, decision := range p.decisions {
		names = append(names, decision.Name)
	}
	slices.Sort(grouped)
	slices.Sort(names)
	if len(grouped) > 0 && !slices.Equal(grouped, names) {
		return fmt.Errorf("placement %s has the decisions %v, its status names %v", p.key, names, grouped)
	}
	return nil
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
