package objectwatch

import "sigs.k8s.io/controller-runtime/pkg/event"

// maxChanges is how many changed objects may wait for a controller before each waits in a goroutine of its own.
const maxChanges = 1024

// Changes hands each changed object to several controllers, as the callback of a Watcher.
type Changes []chan event.TypedGenericEvent[Ref]

// NewChanges returns Changes for a number of receivers.
func NewChanges(receivers int) Changes {
	all := make(Changes, receivers)
	for i := range all {
		all[i] = make(chan event.TypedGenericEvent[Ref], maxChanges)
	}
	return all
}

// Receiver returns the channel of one receiver; it is the only one that may read it.
func (c Changes) Receiver(index int) <-chan event.TypedGenericEvent[Ref] { return c[index] }

// Send never blocks its caller.
func (c Changes) Send(ref Ref) {
	for _, receiver := range c {
		e := event.TypedGenericEvent[Ref]{Object: ref}
		select {
		case receiver <- e:
		default:
			go func() { receiver <- e }()
		}
	}
}
