package watch

import (
	"errors"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// silentAfter is how long a watch may fail without a list before that is reported.
const silentAfter = 30 * time.Second

// silence follows whether a watch delivers lists.
type silence struct {
	// listed is set by each list, and for a watch without lists when it worked.
	listed bool
	// since is the first failure after the last list; zero when there was none.
	since time.Time
	// told is set when the silence was reported.
	told bool
	// throttled is set when the API server refused the watch last because it is overloaded.
	throttled bool
}

// ended takes an end of the watch and reports whether the watch has been silent for so long now that this has to be
// reported.
func (s *silence) ended(err error, now time.Time) bool {
	if s.listed {
		*s = silence{}
	}
	if err == nil || unreached(err) {
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if s.told || now.Sub(s.since) < silentAfter {
		return false
	}
	s.told = true
	return true
}

// refusedNow takes a refusal of an API server that is overloaded, as ended does. The watch has not ended: it goes on
// once it is accepted.
func (s *silence) refusedNow(err error, now time.Time) bool {
	first := s.ended(err, now)
	s.throttled = true
	return first
}

// goesOn takes up that the watch is accepted where it was, and reports whether its silence was reported.
func (s *silence) goesOn() (told bool) {
	if !s.throttled {
		return false
	}
	told = s.told
	*s = silence{}
	return told
}

// lapse takes up that the watch will show nothing for a while, so that its silence is reported now.
func (s *silence) lapse(now time.Time) {
	if s.listed {
		*s = silence{}
	}
	if !s.told {
		s.since = now.Add(-silentAfter)
	}
}

// unreached reports whether there was no connection to the API server. Other requests fail then, too.
func unreached(err error) bool {
	var connection *net.OpError
	return errors.As(err, &connection) && connection.Op == "dial"
}

// stream is a watch whose events are looked at on their way. Unlike the filter of apimachinery it leaves nothing behind
// when it is stopped while an event waits.
type stream struct {
	watch.Interface

	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

// lookAt returns a watch with what look makes of each event.
func lookAt(from watch.Interface, look func(watch.Event) watch.Event) watch.Interface {
	s := &stream{Interface: from, events: make(chan watch.Event), done: make(chan struct{})}
	go func() {
		defer close(s.events)
		for event := range from.ResultChan() {
			select {
			case s.events <- look(event):
			case <-s.done:
				return
			}
		}
	}()
	return s
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.once.Do(func() { close(s.done) })
	s.Interface.Stop()
}
