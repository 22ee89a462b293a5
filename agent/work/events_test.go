package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
)

// take returns what the herald would send now.
func take(h *herald) []letter {
	var sent []letter
	for {
		select {
		case l := <-h.queue:
			sent = append(sent, l)
		default:
			return sent
		}
	}
}

func newTestHerald() (*herald, *testclock.FakePassiveClock) {
	now := testclock.NewFakePassiveClock(epoch)
	return newHerald(nil, now, nil), now
}

func TestAnEventIsToldOnceAndThenCounted(t *testing.T) {
	h, now := newTestHerald()
	work := metav1.ObjectMeta{Namespace: "c", Name: "w", UID: "u"}
	said := message{kind: "Warning", reason: eventFailed, action: actionApply, note: "because"}
	h.tell(work, said)
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
		h.tell(work, said)
	}
	assert.Empty(t, take(h), "it is not even counted up at once")
	now.SetTime(epoch.Add(seriesPause))
	h.tell(work, said)
	h.tell(work, said)
	sent = take(h)
	require.Len(t, sent, 1)
	assert.Nil(t, sent[0].event)
	assert.Equal(t, event.Name, sent[0].name)
	assert.JSONEq(t, `{"series":{"count":102,"lastObservedTime":"2026-01-02T03:05:05.000000Z"}}`, string(sent[0].patch))

	now.SetTime(epoch.Add(seriesPause + seriesLife + time.Second))
	h.tell(work, said)
	sent = take(h)
	require.Len(t, sent, 1)
	assert.NotNil(t, sent[0].event, "after a long time it is new again")
}

func TestWhichEventsAreTheSame(t *testing.T) {
	h, _ := newTestHerald()
	work := metav1.ObjectMeta{Namespace: "c", Name: "w", UID: "u"}
	h.tell(work, message{reason: eventFailed, note: "one"})
	h.tell(work, message{reason: eventFailed, note: "two"})
	assert.Len(t, take(h), 2, "another cause is another Event")
	h.tell(work, message{reason: eventRepaired, note: "one", alike: true})
	h.tell(work, message{reason: eventRepaired, note: "two", alike: true})
	assert.Len(t, take(h), 1, "repairs are one Event whatever was repaired")
	again := work
	again.UID = "v"
	h.tell(again, message{reason: eventFailed, note: "one"})
	assert.Len(t, take(h), 1, "a work of the same name is another one")
}

func TestEventsAreBounded(t *testing.T) {
	h, now := newTestHerald()
	many := func() {
		for i := range 2 * maxSeries {
			h.tell(metav1.ObjectMeta{Namespace: "c", Name: fmt.Sprintf("w%d", i)}, message{reason: eventFailed})
		}
	}
	many()
	assert.Len(t, take(h), eventBurst)
	assert.LessOrEqual(t, len(h.told), maxSeries)
	now.SetTime(epoch.Add(10 * eventPause))
	clear(h.told)
	many()
	assert.Len(t, take(h), 10)
	h.tell(metav1.ObjectMeta{Name: strings.Repeat("n", 253)}, message{note: strings.Repeat("x", 5000)})
	var none *herald
	none.tell(metav1.ObjectMeta{}, message{})
	event := h.event(metav1.ObjectMeta{Name: strings.Repeat("n", 253)}, message{}, epoch)
	assert.LessOrEqual(t, len(event.Name), 253)
}

func TestWhatAStatusTells(t *testing.T) {
	status := func(applied string) *workv1.ManifestWorkStatus {
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
			m, news := appliedTidings(status(c.before), status(c.after))
			assert.Equal(t, c.want != "", news)
			assert.Equal(t, c.want, m.reason)
			if c.want == eventFailed {
				assert.Equal(t, "ConfigMap ns/a: no; ConfigMap ns/b: no; ConfigMap ns/c: no; and 2 more", m.note)
			}
		})
	}
	assert.Equal(t, "manifest 3", manifestName(workv1.ManifestResourceMeta{Ordinal: 3}))
	assert.Equal(t, "Namespace n", manifestName(workv1.ManifestResourceMeta{Kind: "Namespace", Name: "n"}))
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := newCounters(registry)
	require.NoError(t, err)
	second, err := newCounters(registry)
	require.NoError(t, err)
	assert.Same(t, first.applies, second.applies, "the next phase of the agent counts on")
	second.apply(errors.New("x"))
	second.apply(nil)
	second.repair("updated")
	second.deletion(deletionGone)
	second.eviction("started")
	second.event(eventFailed, eventSent)
	second.pass(phaseApply, time.Second)
	l, m := newLedger(nil, func() {}), newMemory()
	l.claim(holder{name: "w"}, claims("a", "b"), nil)
	m.change(holder{name: "w"}, func(k *recall) { k.blocked = 2 })
	require.NoError(t, registry.Register(newGauges(registry, l, m)))
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
	assert.InDelta(t, 1, values["spokelet_work_applies_total failed"], 0)

	var none *counters
	none.apply(nil)
	none.repair("")
	none.deletion("")
	none.eviction("")
	none.event("", "")
	none.pass(phaseApply, 0)
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
