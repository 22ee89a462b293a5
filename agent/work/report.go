package work

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// Actions of the Events.
const (
	actionApply  = "Apply"
	actionRepair = "Repair"
	actionDelete = "Delete"
	actionEvict  = "Evict"
)

// maxNamed is how many objects an Event names.
const maxNamed = 3

// appliedEvent is the Event about a status that was written: the work failed or recovered; false when it did neither.
func appliedEvent(before, after *workv1.ManifestWorkStatus) (workEvent, bool) {
	was := meta.FindStatusCondition(before.Conditions, workv1.WorkApplied)
	is := meta.FindStatusCondition(after.Conditions, workv1.WorkApplied)
	switch {
	case is == nil || (was != nil && was.Status == is.Status):
	case is.Status == metav1.ConditionFalse:
		return workEvent{
			kind: corev1.EventTypeWarning, reason: eventFailed, action: actionApply,
			note: cmp.Or(failures(after), is.Message),
		}, true
	case is.Status == metav1.ConditionTrue && was != nil:
		return workEvent{
			kind: corev1.EventTypeNormal, reason: eventRecovered, action: actionApply, note: "All manifests are applied",
		}, true
	}
	return workEvent{}, false
}

// failures names the first manifests that are not applied, and why.
func failures(after *workv1.ManifestWorkStatus) string {
	var lines []string
	for i := range after.ResourceStatus.Manifests {
		m := &after.ResourceStatus.Manifests[i]
		applied := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
		if applied == nil || applied.Status != metav1.ConditionFalse {
			continue
		}
		lines = append(lines, status.Name(m.ResourceMeta)+": "+applied.Message)
	}
	return message.List(lines, maxNamed, "; ")
}

// repairEvent is the Event about objects that were repaired; false when none was.
func repairEvent(results []apply.Result, manifests []manifest.Manifest) (workEvent, bool) {
	var repaired []string
	for i := range results {
		if done := results[i].Repaired; done != "" {
			repaired = append(repaired, manifests[i].ID().String()+" ("+done+")")
		}
	}
	return workEvent{
		kind: corev1.EventTypeNormal, reason: eventRepaired, action: actionRepair, alike: true,
		note: "Put right what was changed on the spoke: " + message.List(repaired, maxNamed, ", "),
	}, len(repaired) > 0
}

// blockedEvent is the Event about objects that are overdue for deletion.
func blockedEvent(held []prune.Blocked) workEvent {
	return workEvent{
		kind: corev1.EventTypeWarning, reason: eventBlocked, action: actionDelete,
		note: "Deletion waits for " + prune.Describe(held),
	}
}

// evictionEvent is the Event about objects whose work vanished.
func evictionEvent(reason string, at time.Time) workEvent {
	m := workEvent{kind: corev1.EventTypeWarning, reason: reason, action: actionEvict}
	switch reason {
	case eventEviction:
		m.note = fmt.Sprintf("The work is not on the hub any more; its objects on the spoke are deleted at %s unless it "+
			"comes back", at.UTC().Format(time.RFC3339))
	case eventHeld:
		m.note = fmt.Sprintf("The work is not on the hub any more, as others; its objects on the spoke stay until it comes "+
			"back, or until a person confirms their deletion: see condition %s of the ManagedCluster",
			names.ConditionWorksPresent)
	case eventEvicted:
		m.note = "The grace of the work is over, or a person confirmed its eviction; its objects on the spoke are deleted"
	case eventStayed:
		m.kind, m.note = corev1.EventTypeNormal, "The work is back; its objects on the spoke stay"
	}
	return m
}

// olderEvent is the Event about a work that went back to an earlier generation.
func olderEvent() workEvent {
	return workEvent{
		kind: corev1.EventTypeWarning, reason: eventOlder, action: actionDelete,
		note: fmt.Sprintf("The work is older than what was applied; the objects that only the newer content has stay until "+
			"the work has them again, or until a person confirms their deletion: see condition %s of the ManagedCluster",
			names.ConditionWorksPresent),
	}
}

// addReporters adds the publishers to the manager, and the Events and the gauges as far as they are wanted.
func (r *Reconciler) addReporters(mgr ctrl.Manager) error {
	var err error
	r.hubMetas, err = metadata.NewForConfigAndClient(metadata.ConfigFor(r.Hub.GetConfig()), r.Hub.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the metadata client of the hub: %w", err)
	}
	for of := range r.publishers {
		r.publishers[of] = newPublisher(lane(of), r.Workers, r.Clock)
		if err := mgr.Add(r.publishers[of]); err != nil {
			return fmt.Errorf("adding a publisher: %w", err)
		}
	}
	if r.RecordEvents {
		client, err := eventsv1client.NewForConfigAndClient(r.Hub.GetConfig(), r.Hub.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("building the client of events on the hub: %w", err)
		}
		r.events = newRecorder(client.Events(r.Cluster), r.Clock, r.counts)
		if err := mgr.Add(r.events); err != nil {
			return fmt.Errorf("adding the events of works: %w", err)
		}
	}
	if r.Metrics != nil {
		if err := mgr.Add(newGauges(r.Metrics, r.store, r.notes, r.listApplied)); err != nil {
			return fmt.Errorf("adding the metrics of works: %w", err)
		}
	}
	return nil
}

// report reports what a pass repaired on the spoke, and the objects that are overdue for deletion.
func (r *Reconciler) report(f *facts, results []apply.Result, left *prune.Remaining) {
	r.countRepairs(results)
	if e, repaired := repairEvent(results, f.manifests); repaired {
		r.events.record(f.work.ObjectMeta, e)
	}
	r.reportBlocked(f, f.work.ObjectMeta, left)
}

// countRepairs counts the objects that were repaired.
func (r *Reconciler) countRepairs(results []apply.Result) {
	for i := range results {
		if results[i].Repaired != "" {
			r.counts.repair(results[i].Repaired)
		}
	}
}

// reportBlocked reports the objects that are overdue for deletion, in the metrics and by an Event.
func (r *Reconciler) reportBlocked(f *facts, work metav1.ObjectMeta, left *prune.Remaining) {
	overdue, known := left.Overdue(f.now), r.notes.of(f.owner)
	text := prune.Describe(overdue)
	if known.blocked != len(overdue) {
		r.notes.change(f.owner, func(n *note) { n.blocked = len(overdue) })
	}
	if len(overdue) > 0 && known.blockedText != text {
		r.notes.change(f.owner, func(n *note) { n.blockedText = text })
		r.events.record(work, blockedEvent(overdue))
	}
}
