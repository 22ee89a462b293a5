package watch

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// follow starts a watch that shows events only, on a server with two objects, and waits until it is accepted.
func follow(t *testing.T, change ...func(*Watch[*corev1.ConfigMap])) *running {
	t.Helper()
	api := &server{version: "10", objects: []corev1.ConfigMap{*configMap("a"), *configMap("b")}}
	r := start(t, api, append(change, func(w *Watch[*corev1.ConfigMap]) {
		w.Source.EventsOnly, w.Source.LabelSelector = true, "l=1"
		w.Source.Accepted = func() { w.Handler.(*record).add("accepted") } //nolint:forcetypeassert // start made it
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
	assert.Eventually(t, func() bool { return len(r.read()) >= len(want) }, patience, tick)
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

func TestAWatchOfEventsThatIsCutOff(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	for name, c := range map[string]struct {
		// version is that of the API server afterwards.
		version string
		err     *apierrors.StatusError
		want    []string
		from    string
	}{
		"goes on where it was":                                 {"20", nil, []string{"accepted"}, "11"},
		"where nothing happened, too":                          {"11", nil, []string{"accepted"}, "11"},
		"begins again where the API server forgot its version": {"20", expired, []string{"replace at 20:", "accepted"}, "20"},
		"begins again after an error that would come again": {
			"20", apierrors.NewInternalError(errors.New("an object cannot be converted")), []string{"replace at 20:", "accepted"}, "20",
		},
		"begins again where the API server went back": {"5", nil, []string{"replace at 5:", "accepted"}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := follow(t)
			r.open().Add(configMap("c")) // version 11
			r.says(t, "replace at 10:", "accepted", "update c")
			r.set(func(s *server) { s.version = c.version })
			events := r.open()
			if c.err != nil {
				status := c.err.Status()
				events.Error(&status)
			} else {
				events.Stop()
			}
			r.opens(t, events)
			r.says(t, append([]string{"replace at 10:", "accepted", "update c"}, c.want...)...)
			r.set(func(s *server) { assert.Equal(t, c.from, s.options[len(s.options)-1].ResourceVersion) })
		})
	}
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
	for ends := range 10 {
		require.Eventually(t, func() bool { return r.ended() > ends && r.clock.HasWaiters() }, patience, tick)
		r.clock.Step(lastPause)
	}
	assert.Len(t, silent, 1, "it is told once")
	r.says(t, "replace at 10:")
}
