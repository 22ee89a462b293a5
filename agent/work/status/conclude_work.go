package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/message"
)

// concludeWork sets the conditions of the work from those of its manifests.
func concludeWork(at stamp, status *workv1.ManifestWorkStatus) {
	list := status.ResourceStatus.Manifests
	if len(list) > 0 {
		applied := metav1.Condition{
			Type: workv1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: reasonWorkApplied, Message: "Apply manifest work complete",
		}
		if failed := tally(list, workv1.ManifestApplied).no; failed > 0 {
			applied.Status, applied.Reason = metav1.ConditionFalse, reasonWorkFailed
			applied.Message = fmt.Sprintf("%s: %d of %d manifests failed to apply: %s", failedText, failed, len(list),
				firstWith(list, workv1.ManifestApplied, metav1.ConditionFalse))
		}
		at.set(&status.Conditions, applied)
	}
	at.set(&status.Conditions, aggregateAvailable(list))
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Reason, rulePrefix) && tally(list, c.Type).all() == 0
	})
	rules := map[string]struct{}{}
	for i := range list {
		for _, c := range list[i].Conditions {
			if strings.HasPrefix(c.Reason, rulePrefix) {
				rules[c.Type] = struct{}{}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		at.set(&status.Conditions, aggregateRule(list, name))
	}
}

// count is how many manifests have a condition, by its status, and the message of the last of them.
type count struct {
	yes, no, unknown int
	message          string
}

// all is how many manifests have the condition.
func (c count) all() int { return c.yes + c.no + c.unknown }

// tally counts a condition over the manifests.
func tally(list []workv1.ManifestCondition, name string) count {
	var c count
	for i := range list {
		condition := meta.FindStatusCondition(list[i].Conditions, name)
		if condition == nil {
			continue
		}
		c.message = condition.Message
		switch condition.Status {
		case metav1.ConditionTrue:
			c.yes++
		case metav1.ConditionFalse:
			c.no++
		default:
			c.unknown++
		}
	}
	return c
}

// aggregateAvailable is the condition Available of the work.
func aggregateAvailable(list []workv1.ManifestCondition) metav1.Condition {
	c := tally(list, workv1.ManifestAvailable)
	available := metav1.Condition{Type: workv1.WorkAvailable}
	switch {
	case c.no > 0:
		available.Status, available.Reason = metav1.ConditionFalse, reasonSomeMissing
		available.Message = fmt.Sprintf("%d of %d resources are not available: %s", c.no, len(list),
			firstWith(list, workv1.ManifestAvailable, metav1.ConditionFalse))
	case c.unknown > 0:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonSomeUnknown
		available.Message = fmt.Sprintf("%d of %d resources have unknown status: %s", c.unknown, len(list),
			firstWith(list, workv1.ManifestAvailable, metav1.ConditionUnknown))
	case c.yes == 0:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonSomeUnknown
		available.Message = "cannot get any available resource "
	default:
		available.Status, available.Reason = metav1.ConditionTrue, reasonAllAvailable
		available.Message = "All resources are available"
	}
	return available
}

// aggregateRule is a condition of the work that comes from condition rules: of all manifests that have it, or for
// Progressing of any.
func aggregateRule(list []workv1.ManifestCondition, name string) metav1.Condition {
	c := tally(list, name)
	rule := metav1.Condition{
		Type: name, Reason: reasonRulesAggregated,
		Message: fmt.Sprintf("Aggregated from %d manifest conditions", c.all()),
	}
	if c.all() == 1 && c.message != "" {
		rule.Message = c.message
	}
	anyTrue := name == workv1.WorkProgressing && c.yes > 0
	switch {
	case anyTrue:
		rule.Status = metav1.ConditionTrue
	case name == workv1.WorkProgressing && c.unknown > 0:
		rule.Status = metav1.ConditionUnknown
	case c.no > 0:
		rule.Status = metav1.ConditionFalse
	case c.unknown > 0 || c.yes == 0:
		rule.Status = metav1.ConditionUnknown
	default:
		rule.Status = metav1.ConditionTrue
	}
	return rule
}

// Name names a manifest for a person.
func Name(m workv1.ManifestResourceMeta) string {
	switch {
	case m.Kind == "":
		return fmt.Sprintf("manifest %d", m.Ordinal)
	case m.Namespace == "":
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// maxCause is how much of the message of a manifest the conditions of the work quote, in bytes.
const maxCause = 1 << 10

// firstWith quotes the first manifest of which a condition has the status: its ordinal, its object and the cause.
func firstWith(list []workv1.ManifestCondition, name string, status metav1.ConditionStatus) string {
	for i := range list {
		c := meta.FindStatusCondition(list[i].Conditions, name)
		if c == nil || c.Status != status {
			continue
		}
		cause := c.Message
		applied := meta.FindStatusCondition(list[i].Conditions, workv1.ManifestApplied)
		if status == metav1.ConditionFalse && applied != nil && applied.Status == metav1.ConditionFalse {
			cause = applied.Message // it is also why the object does not exist
		}
		m := list[i].ResourceMeta
		if m.Kind == "" {
			return fmt.Sprintf("%s: %s", Name(m), message.Cut(cause, maxCause))
		}
		return fmt.Sprintf("manifest %d (%s): %s", m.Ordinal, Name(m), message.Cut(cause, maxCause))
	}
	return ""
}
