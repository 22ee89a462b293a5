package watch

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

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
