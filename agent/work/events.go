package work

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Reasons of the Events that regard a ManifestWork.
const (
	eventFailed    = "ApplyFailed"
	eventRecovered = "ApplyRecovered"
	eventRepaired  = "DriftRepaired"
	eventBlocked   = "DeletionBlocked"
	eventEviction  = "EvictionStarted"
	eventStayed    = "EvictionStopped"
	eventEvicted   = "Evicted"
)

const (
	// reporter is the name under which Events are told.
	reporter = "klusterlet-work-agent"
	// The hub gets at most one Event in eventPause after the first eventBurst.
	eventBurst = 50
	eventPause = 2 * time.Second
	// seriesPause is how often at most an Event that happens again is counted up on the hub, and seriesLife how long
	// after the last time it is told anew.
	seriesPause, seriesLife = time.Minute, 15 * time.Minute
	// maxSeries bounds how many Events are remembered for being counted up, eventQueue how many wait to be sent.
	maxSeries, eventQueue = 500, 100
	// maxNote is the longest note that the API takes, in bytes, and maxEventName the longest beginning of a name.
	maxNote, maxEventName = 1024, 200
)

// events is the part of the API that Events need.
type events interface {
	Create(ctx context.Context, event *eventsv1.Event, options metav1.CreateOptions) (*eventsv1.Event, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
		subresources ...string) (*eventsv1.Event, error)
}

// message is what an Event says.
type message struct {
	// kind is Normal or Warning; reason and action are words of ours, note is for a person.
	kind, reason, action, note string
	// alike tells that the same reason is the same Event whatever the note says.
	alike bool
}

// herald tells the hub in Events what happens to works. Nobody waits for it: a pass hands over what it has to say, and
// what the hub does not take is lost, for the conditions say the same. The same Event again is counted up, not told
// again, and what is too much is dropped.
type herald struct {
	client events
	clock  clock.PassiveClock
	counts *counters
	limit  flowcontrol.PassiveRateLimiter
	queue  chan letter

	mu   sync.Mutex
	told map[topic]*series
}

// topic says which Events are the same.
type topic struct {
	work         types.NamespacedName
	uid          types.UID
	reason, note string
}

// series is one Event that was told.
type series struct {
	name       string
	last, sent time.Time
	count      int32
}

// letter is one request about an Event: to create event, or to count it up by patch.
type letter struct {
	reason string
	event  *eventsv1.Event
	name   string
	patch  []byte
}

// newHerald returns a herald, which sends nothing until Start.
func newHerald(client events, now clock.PassiveClock, counts *counters) *herald {
	return &herald{
		client: client, clock: now, counts: counts,
		limit: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(
			float32(1/eventPause.Seconds()), eventBurst, now),
		queue: make(chan letter, eventQueue), told: map[topic]*series{},
	}
}

// addReporters adds to the manager what tells others of the work: the Events and the gauges, as far as they are wanted.
func (r *Reconciler) addReporters(mgr ctrl.Manager) error {
	if r.TellEvents {
		client, err := eventsv1client.NewForConfigAndClient(r.Hub.GetConfig(), r.Hub.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("building the client of events on the hub: %w", err)
		}
		r.herald = newHerald(client.Events(r.Cluster), r.Clock, r.counts)
		if err := mgr.Add(r.herald); err != nil {
			return fmt.Errorf("adding the events of works: %w", err)
		}
	}
	if r.Metrics != nil {
		if err := mgr.Add(newGauges(r.Metrics, r.ledger, r.memory)); err != nil {
			return fmt.Errorf("adding the metrics of works: %w", err)
		}
	}
	return nil
}

// Start sends Events until the context ends.
func (h *herald) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-h.queue:
			h.send(ctx, l)
		}
	}
}

// send makes one request, and logs when the hub refuses it.
func (h *herald) send(ctx context.Context, l letter) {
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	var err error
	if l.event != nil {
		_, err = h.client.Create(within, l.event, metav1.CreateOptions{})
	} else {
		_, err = h.client.Patch(within, l.name, types.MergePatchType, l.patch, metav1.PatchOptions{})
	}
	switch {
	case err == nil:
		h.counts.event(l.reason, eventSent)
	case ctx.Err() != nil, apierrors.IsNotFound(err) && l.event == nil:
	default:
		h.counts.event(l.reason, eventRefused)
		log.FromContext(ctx).Info("cannot tell an event on the hub", "event", l.reason, "error", err)
	}
}

// tell hands over what an Event says about a work; a nil herald tells nothing. It never waits.
func (h *herald) tell(work metav1.ObjectMeta, m message) {
	if h == nil {
		return
	}
	l, ready := h.compose(work, m)
	if !ready {
		return
	}
	if !h.limit.TryAccept() {
		h.counts.event(l.reason, eventDropped)
		return
	}
	select {
	case h.queue <- l:
	default:
		h.counts.event(l.reason, eventDropped)
	}
}

// compose decides whether anything is to be sent, and what: a new Event, or that one happened again.
func (h *herald) compose(work metav1.ObjectMeta, m message) (letter, bool) {
	now := h.clock.Now()
	m.note = cut(m.note, maxNote)
	about := topic{
		work: types.NamespacedName{Namespace: work.Namespace, Name: work.Name},
		uid:  work.UID, reason: m.reason, note: m.note,
	}
	if m.alike {
		about.note = ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.told[about]
	if known == nil || now.Sub(known.last) > seriesLife {
		h.makeRoom(now)
		event := h.event(work, m, now)
		h.told[about] = &series{name: event.Name, last: now, sent: now, count: 1}
		return letter{reason: m.reason, event: event}, true
	}
	known.count, known.last = known.count+1, now
	if now.Sub(known.sent) < seriesPause {
		return letter{}, false
	}
	known.sent = now
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{
		Count: known.count, LastObservedTime: metav1.NewMicroTime(now),
	}})
	return letter{reason: m.reason, name: known.name, patch: patch}, err == nil
}

// makeRoom forgets what was told long ago, and everything when that is not enough.
func (h *herald) makeRoom(now time.Time) {
	if len(h.told) < maxSeries {
		return
	}
	for about, known := range h.told {
		if now.Sub(known.last) > seriesLife {
			delete(h.told, about)
		}
	}
	if len(h.told) >= maxSeries {
		clear(h.told)
	}
}

// event is a new Event.
func (h *herald) event(work metav1.ObjectMeta, m message, now time.Time) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace,
			Name:      fmt.Sprintf("%s.%x", strings.TrimRight(cut(work.Name, maxEventName), "-."), now.UnixNano()),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: reporter, ReportingInstance: reporter,
		Type: m.kind, Reason: m.reason, Action: m.action, Note: m.note,
		Regarding: corev1.ObjectReference{
			APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork",
			Namespace: work.Namespace, Name: work.Name, UID: work.UID,
		},
	}
}
