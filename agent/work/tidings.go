package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Actions of the Events: what the agent was doing.
const (
	actionApply  = "Apply"
	actionRepair = "Repair"
	actionDelete = "Delete"
	actionEvict  = "Evict"
)

// maxTold is how many objects an Event names.
const maxTold = 3

// appliedTidings says what an Event tells of a status that was written: that the work failed or recovered.
func appliedTidings(before, after *workv1.ManifestWorkStatus) (message, bool) {
	was := meta.FindStatusCondition(before.Conditions, workv1.WorkApplied)
	is := meta.FindStatusCondition(after.Conditions, workv1.WorkApplied)
	switch {
	case is == nil || (was != nil && was.Status == is.Status):
	case is.Status == metav1.ConditionFalse:
		return message{
			kind: corev1.EventTypeWarning, reason: eventFailed, action: actionApply,
			note: cmp.Or(failures(after), is.Message),
		}, true
	case is.Status == metav1.ConditionTrue && was != nil:
		return message{
			kind: corev1.EventTypeNormal, reason: eventRecovered, action: actionApply, note: "All manifests are applied",
		}, true
	}
	return message{}, false
}

// failures names the first manifests that are not applied, and why.
func failures(status *workv1.ManifestWorkStatus) string {
	var lines []string
	for i := range status.ResourceStatus.Manifests {
		m := &status.ResourceStatus.Manifests[i]
		applied := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
		if applied == nil || applied.Status != metav1.ConditionFalse {
			continue
		}
		lines = append(lines, manifestName(m.ResourceMeta)+": "+applied.Message)
	}
	return enumerate(lines, maxTold, "; ")
}

// manifestName names a manifest for a person.
func manifestName(m workv1.ManifestResourceMeta) string {
	switch {
	case m.Kind == "":
		return fmt.Sprintf("manifest %d", m.Ordinal)
	case m.Namespace == "":
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// repairTidings says what an Event tells of objects that were put right.
func repairTidings(tasks []task) (message, bool) {
	var repaired []string
	for i := range tasks {
		if tasks[i].repaired != "" {
			repaired = append(repaired, tasks[i].id().String()+" ("+tasks[i].repaired+")")
		}
	}
	return message{
		kind: corev1.EventTypeNormal, reason: eventRepaired, action: actionRepair, alike: true,
		note: "Put right what was changed on the spoke: " + enumerate(repaired, maxTold, ", "),
	}, len(repaired) > 0
}

// blockedTidings says what an Event tells of objects that do not go.
func blockedTidings(held []hold) message {
	return message{
		kind: corev1.EventTypeWarning, reason: eventBlocked, action: actionDelete,
		note: "Deletion waits for " + describeHolds(held),
	}
}

// overdue returns the objects that should have gone by now.
func (l *drained) overdue(now time.Time) []hold {
	return slices.DeleteFunc(slices.Clone(l.held), func(h hold) bool { return now.Before(h.since.Add(blockedAfter)) })
}

// report tells of the objects that do not go, in the metrics and to the hub.
func (r *Reconciler) report(f *facts, work metav1.ObjectMeta, left *drained) {
	overdue := left.overdue(f.now)
	if known := r.memory.of(f.holder); known.blocked != len(overdue) {
		r.memory.change(f.holder, func(k *recall) { k.blocked = len(overdue) })
	}
	if len(overdue) > 0 && r.memory.of(f.holder).blockers != describeHolds(overdue) {
		r.memory.change(f.holder, func(k *recall) { k.blockers = describeHolds(overdue) })
		r.herald.tell(work, blockedTidings(overdue))
	}
}

// evictionTidings says what an Event tells of objects whose work vanished.
func evictionTidings(reason string, at time.Time) message {
	m := message{kind: corev1.EventTypeWarning, reason: reason, action: actionEvict}
	switch reason {
	case eventEviction:
		m.note = fmt.Sprintf("The work is not on the hub any more; its objects on the spoke are deleted at %s unless it "+
			"comes back", at.UTC().Format(time.RFC3339))
	case eventEvicted:
		m.note = "The grace of the work is over; its objects on the spoke are deleted"
	case eventStayed:
		m.kind, m.note = corev1.EventTypeNormal, "The work is back; its objects on the spoke stay"
	}
	return m
}

// enumerate joins the first limit lines and counts the others.
func enumerate(lines []string, limit int, separator string) string {
	if len(lines) <= limit {
		return strings.Join(lines, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(lines[:limit], separator), separator, len(lines)-limit)
}
