package planner

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Counts are the numbers of clusters that the status of a placement reports (docs/reference/hub.md, "Counts of a
// placement").
type Counts struct {
	// Total is what the placement selects, Configured what it owns with an add-on or soon with one.
	Total, Configured int
	// Progressing are those admitted, in flight or soaking; Done those that succeeded and soaked.
	Progressing, Done int
	// Failed are those that report that they do not work, TimedOut those that took longer than the progressDeadline. A
	// cluster may be both.
	Failed, TimedOut int
	// unfinished are those that leave and have not reached the target, or have failed with it.
	unfinished int
}

// count counts the clusters of the placement.
func (r *Result) count(p Placement, members []member) {
	c := Counts{Total: p.Selected}
	for n := range members {
		m := &members[n]
		if m.Leaving {
			if m.phase != done {
				c.unfinished++
			}
			continue
		}
		c.Configured++
		if m.phase == timedOut {
			c.TimedOut++
		}
		switch {
		case m.State == Failed:
			c.Failed++
		case m.phase == done:
			c.Done++
		case m.phase.keepsSlot() || m.admitted:
			c.Progressing++
		}
	}
	r.Counts = c
}

// Complete reports whether all clusters of the placement have the target, those that leave and may come back at once as
// well. A placement without clusters is not complete.
func (c Counts) Complete() bool { return c.Done == c.Configured && c.Done > 0 && c.unfinished == 0 }

// String returns the counts in the form that scripts of OCM parse.
func (c Counts) String() string {
	if c.Complete() {
		return fmt.Sprintf("selected clusters %d. configured addons %d/%d completed with no errors, %d failed %d timeout.",
			c.Total, c.Done, c.Configured, c.Failed, c.TimedOut)
	}
	return fmt.Sprintf("selected clusters %d. configured addons %d/%d progressing..., %d failed %d timeout.",
		c.Total, c.Progressing+c.Done, c.Configured, c.Failed, c.TimedOut)
}

// Condition returns the condition Progressing of the placement: the counts, and after them what the planner and the
// caller remark.
func (r Result) Condition(more ...string) metav1.Condition {
	condition := metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionProgressing,
		Status:  metav1.ConditionTrue,
		Reason:  addonv1beta1.ProgressingReasonProgressing,
		Message: r.Counts.String(),
	}
	if r.Counts.Complete() {
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted
	}
	remarks := slices.DeleteFunc(slices.Concat([]string{r.Problem, r.Stopped}, r.Remarks, more),
		func(remark string) bool { return remark == "" })
	if len(remarks) > 0 {
		condition.Message += " " + strings.Join(remarks, "; ") + "."
	}
	return condition
}
