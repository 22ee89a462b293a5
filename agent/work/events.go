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
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons of the Events that regard a ManifestWork.
const (
	eventFailed    = "ApplyFailed"
	eventRecovered = "ApplyRecovered"
	eventRepaired  = "DriftRepaired"
	eventBlocked   = "DeletionBlocked"
	eventEviction  = "EvictionStarted"
	eventHeld      = "EvictionHeld"
	eventStayed    = "EvictionStopped"
	eventEvicted   = "Evicted"
	eventOlder     = "PruneHeld"
)

const (
	// reporter is the reportingController of the Events.
	reporter = "klusterlet-work-agent"
	// The hub gets at most one Event in eventPause after the first eventBurst.
	eventBurst = 50
	eventPause = 2 * time.Second
	// seriesPause is the least time between two updates of the count of an Event that happens again, and seriesLife how
	// long after its last time it becomes a new Event.
	seriesPause, seriesLife = time.Minute, 15 * time.Minute
	// maxSeries bounds how many Events are remembered for counting, eventQueue how many wait to be sent.
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

// workEvent is the content of an Event.
type workEvent struct {
	// kind is Normal or Warning; reason and action are our own, note is for a person.
	kind, reason, action, note string
	// alike means that Events of the same reason are the same Event whatever their note.
	alike bool
}

// recorder records Events on the hub about works. A pass never waits for it: it enqueues an event, and one that the hub
// does not accept is lost, because the conditions say the same. An Event that happens again is counted and not created
// again, and too many are dropped.
//
// The broadcaster of client-go does neither: it has no limit for all Events of a source together, and it counts Events
// as the same only with the same note.
type recorder struct {
	client events
	clock  clock.PassiveClock
	counts *counters
	limit  flowcontrol.PassiveRateLimiter
	queue  chan request

	mu     sync.Mutex
	recent map[topic]*series
}

// topic identifies Events that are the same.
type topic struct {
	work         types.NamespacedName
	uid          types.UID
	reason, note string
}

// series is one Event that was created.
type series struct {
	name       string
	last, sent time.Time
	count      int32
}

// request is one request about an Event: to create event, or to update its count by patch.
type request struct {
	reason string
	event  *eventsv1.Event
	name   string
	patch  []byte
}

// newRecorder returns a recorder that sends nothing until Start.
func newRecorder(client events, now clock.PassiveClock, counts *counters) *recorder {
	return &recorder{
		client: client, clock: now, counts: counts,
		limit: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(
			float32(1/eventPause.Seconds()), eventBurst, now),
		queue: make(chan request, eventQueue), recent: map[topic]*series{},
	}
}

// Start sends Events until the context ends.
func (r *recorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-r.queue:
			_ = reconcile.Contain(ctx, "an event "+l.reason, func() { r.send(ctx, l) }) // the next one may be sent
		}
	}
}

// send makes one request, and logs when the hub refuses it.
func (r *recorder) send(ctx context.Context, l request) {
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	var err error
	if l.event != nil {
		_, err = r.client.Create(within, l.event, metav1.CreateOptions{})
	} else {
		_, err = r.client.Patch(within, l.name, types.MergePatchType, l.patch, metav1.PatchOptions{})
	}
	switch {
	case err == nil:
		r.counts.event(l.reason, eventSent)
	case ctx.Err() != nil, apierrors.IsNotFound(err) && l.event == nil:
	default:
		r.counts.event(l.reason, eventRefused)
		log.FromContext(ctx).Info("cannot record an event on the hub", "event", l.reason, "error", err)
	}
}

// record enqueues an event about a work; a nil recorder does nothing. It never waits.
func (r *recorder) record(work metav1.ObjectMeta, m workEvent) {
	if r == nil {
		return
	}
	l, ready := r.compose(work, m)
	if !ready {
		return
	}
	if !r.limit.TryAccept() {
		r.counts.event(l.reason, eventDropped)
		return
	}
	select {
	case r.queue <- l:
	default:
		r.counts.event(l.reason, eventDropped)
	}
}

// compose decides whether anything is to be sent, and what: a new Event, or that one happened again.
func (r *recorder) compose(work metav1.ObjectMeta, m workEvent) (request, bool) {
	now := r.clock.Now()
	m.note = message.Cut(m.note, maxNote)
	about := topic{
		work: types.NamespacedName{Namespace: work.Namespace, Name: work.Name},
		uid:  work.UID, reason: m.reason, note: m.note,
	}
	if m.alike {
		about.note = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.recent[about]
	if known == nil || now.Sub(known.last) > seriesLife {
		r.makeRoom(now)
		event := r.event(work, m, now)
		r.recent[about] = &series{name: event.Name, last: now, sent: now, count: 1}
		return request{reason: m.reason, event: event}, true
	}
	known.count, known.last = known.count+1, now
	if now.Sub(known.sent) < seriesPause {
		return request{}, false
	}
	known.sent = now
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{
		Count: known.count, LastObservedTime: metav1.NewMicroTime(now),
	}})
	return request{reason: m.reason, name: known.name, patch: patch}, err == nil
}

// makeRoom forgets Events of long ago, and all when that is not enough.
func (r *recorder) makeRoom(now time.Time) {
	if len(r.recent) < maxSeries {
		return
	}
	for about, known := range r.recent {
		if now.Sub(known.last) > seriesLife {
			delete(r.recent, about)
		}
	}
	if len(r.recent) >= maxSeries {
		clear(r.recent)
	}
}

// event is a new Event.
func (r *recorder) event(work metav1.ObjectMeta, m workEvent, now time.Time) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace,
			Name:      fmt.Sprintf("%s.%x", strings.TrimRight(message.Cut(work.Name, maxEventName), "-."), now.UnixNano()),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: reporter, ReportingInstance: reporter,
		Type: m.kind, Reason: m.reason, Action: m.action, Note: m.note,
		Regarding: corev1.ObjectReference{
			APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork",
			Namespace: work.Namespace, Name: work.Name, UID: work.UID,
		},
	}
}
