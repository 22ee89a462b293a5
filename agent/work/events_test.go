package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// take returns what the recorder would send now.
func take(h *recorder) []request {
	var sent []request
	for {
		select {
		case l := <-h.queue:
			sent = append(sent, l)
		default:
			return sent
		}
	}
}

// epoch is an instant.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTestRecorder() (*recorder, *testclock.FakePassiveClock) {
	now := testclock.NewFakePassiveClock(epoch)
	return newRecorder(nil, now, nil), now
}

func TestAnEventIsToldOnceAndThenCounted(t *testing.T) {
	h, now := newTestRecorder()
	work := metav1.ObjectMeta{Namespace: "c", Name: "w", UID: "u"}
	said := workEvent{kind: "Warning", reason: eventFailed, action: actionApply, note: "because"}
	h.record(work, said)
	sent := take(h)
	require.Len(t, sent, 1)
	event := sent[0].event
	require.NotNil(t, event)
	assert.Equal(t, "c", event.Namespace)
	assert.True(t, strings.HasPrefix(event.Name, "w."))
	assert.Equal(t, "ManifestWork", event.Regarding.Kind)
	assert.Equal(t, "w", event.Regarding.Name)
	assert.Equal(t, work.UID, event.Regarding.UID)
	assert.Equal(t, []string{"Warning", "ApplyFailed", "Apply", "because"},
		[]string{event.Type, event.Reason, event.Action, event.Note})

	for range 100 {
		h.record(work, said)
	}
	assert.Empty(t, take(h), "it is not even counted up at once")
	now.SetTime(epoch.Add(seriesPause))
	h.record(work, said)
	h.record(work, said)
	sent = take(h)
	require.Len(t, sent, 1)
	assert.Nil(t, sent[0].event)
	assert.Equal(t, event.Name, sent[0].name)
	assert.JSONEq(t, `{"series":{"count":102,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`, string(sent[0].patch))

	now.SetTime(epoch.Add(seriesPause + seriesLife + time.Second))
	h.record(work, said)
	sent = take(h)
	require.Len(t, sent, 1)
	assert.NotNil(t, sent[0].event, "after a long time it is new again")
}

func TestWhichEventsAreTheSame(t *testing.T) {
	h, _ := newTestRecorder()
	work := metav1.ObjectMeta{Namespace: "c", Name: "w", UID: "u"}
	h.record(work, workEvent{reason: eventFailed, note: "one"})
	h.record(work, workEvent{reason: eventFailed, note: "two"})
	assert.Len(t, take(h), 2, "another cause is another Event")
	h.record(work, workEvent{reason: eventRepaired, note: "one", alike: true})
	h.record(work, workEvent{reason: eventRepaired, note: "two", alike: true})
	assert.Len(t, take(h), 1, "repairs are one Event whatever was repaired")
	again := work
	again.UID = "v"
	h.record(again, workEvent{reason: eventFailed, note: "one"})
	assert.Len(t, take(h), 1, "a work of the same name is another one")
}

func TestEventsAreBounded(t *testing.T) {
	h, now := newTestRecorder()
	many := func() {
		for i := range 2 * maxSeries {
			h.record(metav1.ObjectMeta{Namespace: "c", Name: fmt.Sprintf("w%d", i)}, workEvent{reason: eventFailed})
		}
	}
	many()
	assert.Len(t, take(h), eventBurst)
	assert.LessOrEqual(t, len(h.recent), maxSeries)
	now.SetTime(epoch.Add(10 * eventPause))
	clear(h.recent)
	many()
	assert.Len(t, take(h), 10)
	h.record(metav1.ObjectMeta{Name: strings.Repeat("n", 253)}, workEvent{note: strings.Repeat("x", 5000)})
	var none *recorder
	none.record(metav1.ObjectMeta{}, workEvent{})
	event := h.event(metav1.ObjectMeta{Name: strings.Repeat("n", 253)}, workEvent{}, epoch)
	assert.LessOrEqual(t, len(event.Name), 253)
}

func TestWhatAStatusTells(t *testing.T) {
	statusOf := func(applied string) *workv1.ManifestWorkStatus {
		s := &workv1.ManifestWorkStatus{}
		if applied == "" {
			return s
		}
		s.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionStatus(applied)}}
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			s.ResourceStatus.Manifests = append(s.ResourceStatus.Manifests, workv1.ManifestCondition{
				ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(i), Kind: "ConfigMap", Namespace: "ns", Name: name},
				Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionStatus(applied), Message: "no"}},
			})
		}
		return s
	}
	for name, c := range map[string]struct {
		before, after, want string
	}{
		"a new work that is applied":      {"", "True", ""},
		"a new work that is not":          {"", "False", eventFailed},
		"one that is not any more":        {"True", "False", eventFailed},
		"one that is again":               {"False", "True", eventRecovered},
		"one that still is":               {"True", "True", ""},
		"one that still is not":           {"False", "False", ""},
		"one that has no manifests":       {"", "", ""},
		"one that has no manifests, more": {"True", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, news := appliedEvent(statusOf(c.before), statusOf(c.after))
			assert.Equal(t, c.want != "", news)
			assert.Equal(t, c.want, m.reason)
			if c.want == eventFailed {
				assert.Equal(t, "ConfigMap ns/a: no; ConfigMap ns/b: no; ConfigMap ns/c: no; and 2 more", m.note)
			}
		})
	}
	assert.Equal(t, "manifest 3", status.Name(workv1.ManifestResourceMeta{Ordinal: 3}))
	assert.Equal(t, "Namespace n", status.Name(workv1.ManifestResourceMeta{Kind: "Namespace", Name: "n"}))
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := newCounters(registry)
	require.NoError(t, err)
	second, err := newCounters(registry)
	require.NoError(t, err)
	assert.Equal(t, len(apply.Repairs()), testutil.CollectAndCount(first.repairs), "an alert sees the first repair, too")
	assert.Same(t, first.applies, second.applies, "the next phase of the agent counts on")
	second.apply(errors.New("x"))
	second.apply(nil)
	second.repair("updated")
	second.deletion(prune.Gone)
	second.eviction("started")
	second.event(eventFailed, eventSent)
	second.pass(phaseApply, time.Second)
	second.arrived(time.Second)
	s, n := watch.NewStore(nil, func() {}), newNotes()
	cm := watch.Key{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "ns"}
	s.Claim(watch.Owner{Name: "w"}, map[manifest.ID]watch.Key{{Name: "a"}: cm, {Name: "b"}: cm}, nil)
	n.change(watch.Owner{Name: "w"}, func(n *note) { n.blocked = 2 })
	g := newGauges(registry, s, n, nil)
	g.applied = func() ([]workv1.AppliedManifestWork, error) { return nil, nil }
	require.NoError(t, registry.Register(g))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		assert.True(t, strings.HasPrefix(family.GetName(), "spokelet_work_"))
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	assert.InDelta(t, 2, values["spokelet_work_objects"], 0)
	assert.InDelta(t, 1, values["spokelet_work_works live"], 0)
	assert.InDelta(t, 1, values["spokelet_work_watches wanted"], 0)
	assert.InDelta(t, 2, values["spokelet_work_deletion_blocked"], 0)
	assert.Contains(t, values, "spokelet_work_unowned held")
	assert.InDelta(t, 1, values["spokelet_work_applies_total failed"], 0)

	var none *counters
	none.apply(nil)
	none.repair("")
	none.deletion("")
	none.eviction("")
	none.event("", "")
	none.pass(phaseApply, 0)
	none.arrived(0)
}

func TestGraceBeginsOnAWholeSecond(t *testing.T) {
	for _, offset := range []time.Duration{0, 1, time.Millisecond, time.Second - 1} {
		now := epoch.Add(offset)
		start := graceStart(now)
		assert.False(t, start.Time.Before(now), "the grace is never cut short")
		assert.Less(t, start.Sub(now), time.Second)
		assert.Equal(t, start.Truncate(time.Second), start.Time)
	}
}

func TestTheNoteOfABlockedDeletionFits(t *testing.T) {
	long := strings.Repeat("n", 253)
	var blocked []prune.Blocked
	for range 1000 {
		blocked = append(blocked, prune.Blocked{
			Entry: workv1.AppliedManifestResourceMeta{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "x", Name: long}},
			Since: epoch, Finalizers: []string{long + "/a", long + "/b"}, Cause: strings.Repeat("x", 5000),
		})
	}
	h, _ := newTestRecorder()
	h.record(metav1.ObjectMeta{Name: "w"}, blockedEvent(blocked))
	assert.LessOrEqual(t, len(take(h)[0].event.Note), maxNote)
}
