package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/roundtrip"
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

// FailureDetector observes the agent's own requests to one API server. A request that fails, an answer of 401, of 500
// or above, and a second connection are signs that the API server may not be healthy, or of use to this agent.
type FailureDetector struct {
	suspected atomic.Bool
	connected atomic.Bool
	trigger   trigger
}

// probing marks the context of the requests of probes, which are not observed.
type probing struct{}

// Wrap returns a transport whose requests are observed; it fits rest.Config.Wrap.
func (t *FailureDetector) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		ctx := request.Context()
		if ctx.Value(probing{}) != nil {
			return next.RoundTrip(request)
		}
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused && t.connected.Swap(true) {
				t.suspect()
			}
		}}
		answer, err := next.RoundTrip(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
		switch {
		case err != nil && ctx.Err() == nil:
			t.suspect()
		case err == nil && (answer.StatusCode >= http.StatusInternalServerError ||
			answer.StatusCode == http.StatusUnauthorized):
			t.suspect()
		}
		return answer, err
	})
}

// suspect records a sign of failure and requests a pass, once until take.
func (t *FailureDetector) suspect() {
	if !t.suspected.Swap(true) {
		t.trigger.Fire()
	}
}

// take reports whether there was a sign of failure since the last call.
func (t *FailureDetector) take() bool { return t.suspected.Swap(false) }

// asProbe returns a context whose requests are not observed.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }
