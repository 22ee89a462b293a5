package watch

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// follow starts a watch that shows events only, on a server with two objects, and waits until it is accepted.
func follow(t *testing.T, change ...func(*Watch[*corev1.ConfigMap])) *running {
	t.Helper()
	api := &server{version: "10", objects: []corev1.ConfigMap{*configMap("a"), *configMap("b")}}
	r := start(t, api, append(change, func(w *Watch[*corev1.ConfigMap]) {
		w.Source.EventsOnly, w.Source.LabelSelector = true, "l=1"
		says, ok := w.Handler.(*record)
		require.True(t, ok)
		w.Source.Accepted = func() { says.add("accepted") }
		w.Source.WentBack = func(context.Context) { says.add("went back") }
	})...)
	r.opens(t)
	return r
}

// opens waits until a watch is open that is not the one before.
func (r *running) opens(t *testing.T, before ...*watch.RaceFreeFakeWatcher) {
	t.Helper()
	require.Eventually(t, func() bool {
		r.clock.Step(endedPause)
		now := r.open()
		return now != nil && !slices.Contains(before, now)
	}, patience, tick)
}

// says waits until the handler received so much.
func (r *running) says(t *testing.T, want ...string) {
	t.Helper()
	r.steps(t, endedPause, func() bool { return len(r.read()) >= len(want) })
	assert.Equal(t, want, r.read())
}

func TestAWatchOfEventsListsNoObjects(t *testing.T) {
	r := follow(t)
	r.open().Add(configMap("c"))
	r.says(t, "replace at 10:", "accepted", "update c")
	r.set(func(s *server) {
		require.Len(t, s.options, 2)
		assert.EqualValues(t, 1, s.options[0].Limit)
		assert.Empty(t, s.options[0].ResourceVersion, "the newest state is asked for, not that of a cache")
		assert.Equal(t, "l=1", s.options[0].LabelSelector)
		assert.Equal(t, "10", s.options[1].ResourceVersion)
		assert.Nil(t, s.options[1].SendInitialEvents)
	})
}

func TestAWatchOfEventsThatIsCutOffGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		// version is that of the API server afterwards.
		version string
		want    []string
		from    string
	}{
		"where it was":                               {"20", []string{"accepted"}, "11"},
		"where nothing happened, too":                {"11", []string{"accepted"}, "11"},
		"from the state of a store that is put back": {"5", []string{"went back", "replace at 5:", "accepted"}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := follow(t)
			r.open().Add(configMap("c")) // version 11
			r.says(t, "replace at 10:", "accepted", "update c")
			r.set(func(s *server) { s.version = c.version })
			events := r.open()
			events.Stop()
			r.opens(t, events)
			r.says(t, append([]string{"replace at 10:", "accepted", "update c"}, c.want...)...)
			r.set(func(s *server) {
				watches := slices.DeleteFunc(s.options, func(o metav1.ListOptions) bool { return o.TimeoutSeconds == nil })
				assert.Equal(t, c.from, watches[len(watches)-1].ResourceVersion)
			})
		})
	}
}

// count returns how many lines begin with a text.
func count(lines []string, prefix string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// What ends each watch at a version would end all others there, too.
func TestAWatchOfEventsThatDoesNotGetOnBeginsAgain(t *testing.T) {
	for name, bad := range map[string]*apierrors.StatusError{
		"the API server forgot its version": apierrors.NewResourceExpired("too old"),
		"an object cannot be converted":     apierrors.NewInternalError(errors.New("no conversion")),
	} {
		t.Run(name, func(t *testing.T) {
			silent := make(chan error, 100)
			r := follow(t, func(w *Watch[*corev1.ConfigMap]) { w.Silent = func(err error) { silent <- err } })
			r.open().Add(configMap("c")) // version 11
			r.says(t, "replace at 10:", "accepted", "update c")
			r.clock.Step(leastBetween)
			r.set(func(s *server) { s.version, s.poison = "20", map[string]*apierrors.StatusError{"11": bad} })
			r.open().Stop()
			r.steps(t, time.Second, func() bool { return count(r.read(), "replace") == 2 && r.open() != nil })
			assert.Empty(t, silent, "it took some seconds")

			r.set(func(s *server) { s.poison["20"] = bad })
			r.open().Stop()
			r.steps(t, 10*time.Second, func() bool { return len(silent) > 0 })
			assert.LessOrEqual(t, count(r.read(), "replace"), 1+mostBeginnings, "its caller polls instead")
			r.steps(t, 10*time.Second, func() bool { return len(silent) > 1 })
			r.set(func(s *server) { s.version, s.poison = "30", nil })
			r.steps(t, 10*time.Second, func() bool { return r.open() != nil })
		})
	}
}

// An API server forgets what was before when the definition of a kind is edited, or when it starts again.
//
// Shows: work/watches-wide
func TestAWatchOfEventsWhoseVersionIsForgottenBeginsAtOnce(t *testing.T) {
	silent := make(chan error, 100)
	r := follow(t, func(w *Watch[*corev1.ConfigMap]) { w.Silent = func(err error) { silent <- err } })
	for n := range mostBeginnings + 1 {
		edited, before := r.clock.Now(), count(r.read(), "replace")
		r.set(func(s *server) {
			s.poison = map[string]*apierrors.StatusError{s.version: apierrors.NewResourceExpired("too old")}
			s.version = strconv.Itoa(20 + n)
		})
		r.open().Stop()
		if n < mostBeginnings {
			r.steps(t, 100*time.Millisecond, func() bool { return count(r.read(), "replace") > before && r.open() != nil })
			assert.Less(t, r.clock.Since(edited), 5*time.Second)
			assert.Empty(t, silent)
			continue
		}
		r.steps(t, 100*time.Millisecond, func() bool { return len(silent) > 0 })
		assert.Less(t, r.clock.Since(edited), 5*time.Second, "what shows nothing for minutes is told at once")
	}
	require.True(t, r.passes(t, 2*leastBetween, func() bool { return r.open() != nil }), "and it comes back")
}

func TestAWatchOfEventsThatIsAlwaysCutOffIsSilent(t *testing.T) {
	silent := make(chan error, 100)
	api := &server{version: "10"}
	r := start(t, api, func(w *Watch[*corev1.ConfigMap]) {
		w.Source.EventsOnly, w.Silent = true, func(err error) { silent <- err }
		accepted := w.Source.Watch
		w.Source.Watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := accepted(ctx, o)
			events.Stop()
			return events, err
		}
	})
	r.steps(t, 5*time.Second, func() bool { return len(silent) > 0 })
	require.ErrorIs(t, <-silent, errCutOff)
}

func TestAWatchOfEventsComesBackSoonAfterAnOutage(t *testing.T) {
	r := follow(t)
	events := r.open()
	away := apierrors.NewServiceUnavailable("no server")
	r.set(func(s *server) { s.listErr, s.watchErr = away, away })
	events.Stop()
	for range 40 {
		require.Eventually(t, r.clock.HasWaiters, patience, tick)
		r.clock.Step(15 * time.Second)
	}
	r.set(func(s *server) { s.listErr, s.watchErr = nil, nil })
	healed := r.clock.Now()
	r.steps(t, time.Second, func() bool { return r.open() != nil })
	assert.LessOrEqual(t, r.clock.Since(healed), lastPause+10*time.Second)
}

// What a list showed needs no check, so an API server that is overloaded is not asked for more: the reflector asks for
// the watch again, without an end and without a word.
//
// Shows: work/watches-fail
func TestAWatchThatAnOverloadedServerRefusesSaysSoAndListsNothing(t *testing.T) {
	silent, resumed := make(chan error, 10), make(chan bool, 10)
	wait := apierrors.NewTooManyRequests("wait", 1)
	r := start(t, &server{version: "10", watchErr: wait}, func(w *Watch[*corev1.ConfigMap]) {
		w.Silent, w.Resumed = func(err error) { silent <- err }, func() { resumed <- true }
	})
	r.steps(t, 5*time.Second, func() bool { return len(silent) > 0 })
	require.ErrorIs(t, <-silent, wait)
	assert.GreaterOrEqual(t, r.clock.Since(epoch), silentAfter, "most refusals go away by themselves")
	require.Len(t, r.logged(), 1)
	assert.Contains(t, r.logged()[0], "keeps failing")
	for range 100 {
		require.Eventually(t, r.clock.HasWaiters, patience, tick)
		r.clock.Step(5 * time.Second)
	}
	assert.Empty(t, silent, "it is told once")
	assert.Equal(t, 1, r.listed(), "an API server that refuses watches gets no lists")
	r.set(func(s *server) { s.watchErr = nil })
	r.steps(t, 5*time.Second, func() bool { return r.open() != nil })
	require.Eventually(t, func() bool { return len(resumed) == 1 }, patience, tick)
	assert.Equal(t, 2, r.listed(), "and one when it accepts the watch: its store may have been put back meanwhile")
	r.set(func(s *server) { s.watchErr = wait })
	r.open().Stop()
	r.steps(t, 5*time.Second, func() bool { return len(silent) > 0 })
}

func TestAStoreThatIsPutBackDuringALongOutageIsNoticed(t *testing.T) {
	for name, eventsOnly := range map[string]bool{"of events": true, "with a list": false} {
		t.Run(name, func(t *testing.T) {
			r := start(t, &server{version: "10"}, func(w *Watch[*corev1.ConfigMap]) { w.Source.EventsOnly = eventsOnly })
			r.opens(t)
			events := r.open()
			events.Add(configMap("c")) // version 11
			require.Eventually(t, func() bool { return count(r.read(), "update") == 1 }, patience, tick)
			r.set(func(s *server) { s.watchErr, s.listErr, s.version = syscall.ECONNREFUSED, syscall.ECONNREFUSED, "5" })
			events.Stop()
			for range 40 { // longer than a watch lasts
				require.Eventually(t, r.clock.HasWaiters, patience, tick)
				r.clock.Step(30 * time.Second)
			}
			r.set(func(s *server) { s.watchErr, s.listErr = nil, nil })
			assert.True(t, r.passes(t, 10*time.Minute, func() bool { return count(r.read(), "replace at 5") > 0 }))
		})
	}
}

func TestRelistComesToAWatchOfEventsThatIsCutOffNowAndThen(t *testing.T) {
	r := follow(t, func(w *Watch[*corev1.ConfigMap]) { w.Relist = time.Hour })
	for range 3 {
		before := r.open()
		r.clock.Step(40 * time.Minute)
		before.Stop() // by then it may have been stopped, to list again
		r.opens(t, before)
	}
	require.Eventually(t, func() bool { r.clock.Step(time.Second); return count(r.read(), "replace") > 1 }, patience, tick)
}

func TestAListWithoutAVersionIsHandedOver(t *testing.T) {
	r := start(t, &server{}, func(w *Watch[*corev1.ConfigMap]) { w.Source.EventsOnly = true })
	r.opens(t)
	assert.Equal(t, 1, count(r.read(), "replace"))
}

func TestAWatchOfEventsBeginsAgainAfterRelist(t *testing.T) {
	r := follow(t, func(w *Watch[*corev1.ConfigMap]) { w.Relist = time.Hour })
	before := r.open()
	r.set(func(s *server) { s.version = "20" })
	r.clock.Step(time.Hour)
	require.Eventually(t, func() bool { return r.ended() == 1 }, patience, tick)
	r.opens(t, before)
	r.says(t, "replace at 10:", "accepted", "replace at 20:", "accepted")
}

func TestListsDoNotMakeUpForAWatchOfEventsThatKeepsFailing(t *testing.T) {
	silent := make(chan error, 10)
	api := &server{version: "10", watchErr: apierrors.NewInternalError(errors.New("the etcd of events is away"))}
	r := start(t, api, func(w *Watch[*corev1.ConfigMap]) {
		w.Source.EventsOnly, w.Silent = true, func(err error) { silent <- err }
	})
	r.steps(t, lastPause, func() bool { return len(silent) > 0 })
	r.says(t, "replace at 10:")
}
