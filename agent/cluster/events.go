package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reportingController is the reporting controller of Events on the hub (docs/reference/registration.md, "Status of a
// cluster"), and the prefix of the field manager of labels on the spoke.
const reportingController = "klusterlet-agent"

// Reasons of the events on the hub.
const (
	eventAvailable   = "Available"
	eventUnavailable = "Unavailable"
)

// events creates Events on the hub; the agent has no other permission for them.
type events interface {
	Create(ctx context.Context, event *eventsv1.Event, options metav1.CreateOptions) (*eventsv1.Event, error)
}

// recordEvent creates the Event of a change of the ManagedCluster that has been written. An Event that cannot be
// created is logged and not retried: the condition has the same information.
func (r *Reconciler) recordEvent(ctx context.Context, before, after *clusterv1.ManagedCluster, now time.Time) {
	event := availabilityEvent(before, after, now)
	if event == nil {
		return
	}
	if _, err := r.events.Create(ctx, event, metav1.CreateOptions{}); err != nil {
		log.FromContext(ctx).Info("cannot create an event on the hub", "event", event.Reason, "error", err.Error())
	}
}

// availabilityEvent returns the Event for a ManagedCluster that became available or unavailable between two copies; nil
// for none. The API requires an Event to be in the namespace of its object. A ManagedCluster has none, so the Event
// names the namespace of the cluster.
func availabilityEvent(before, after *clusterv1.ManagedCluster, now time.Time) *eventsv1.Event {
	was := meta.FindStatusCondition(before.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	is := meta.FindStatusCondition(after.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if is == nil || is.Status == metav1.ConditionUnknown || (was != nil && was.Status == is.Status) {
		return nil
	}
	reason, kind := eventAvailable, corev1.EventTypeNormal
	if is.Status == metav1.ConditionFalse {
		reason, kind = eventUnavailable, corev1.EventTypeWarning
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: after.Name, Name: fmt.Sprintf("%s.%x", after.Name, now.UnixNano()),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: reportingController, ReportingInstance: reportingController,
		Type: kind, Reason: reason, Action: reason, Note: is.Message,
		Regarding: corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster",
			Namespace: after.Name, Name: after.Name, UID: after.UID,
		},
	}
}
