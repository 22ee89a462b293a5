package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// publishTimeout is how long a status may take on its way to the hub: over a link of 64 kbit/s, that of some hundred
// manifests.
const publishTimeout = time.Minute

// publisher sends the statuses of works to the hub, several at a time and one of each work, so that no pass has to wait
// for a link that is slow or a hub that does not answer. It is a Runnable.
type publisher struct {
	// senders is how many statuses are sent at the same time.
	senders int
	// jobs has room for one status of each sender: a pass may follow another one before its sender is back.
	jobs chan *sending
	// slow is set while the last status took longer than hubTimeout: then no pass waits for the next ones.
	slow atomic.Bool
}

// sending is one status on its way.
type sending struct {
	send func(ctx context.Context) error
	// ended is called with the result when the pass did not wait for it.
	ended func(err error)
	// result has the result, and left is set when the pass does not wait for it.
	result chan error
	left   atomic.Bool
	once   sync.Once
}

func newPublisher(senders int) *publisher {
	return &publisher{senders: senders, jobs: make(chan *sending, senders)}
}

// Start implements manager.Runnable.
func (p *publisher) Start(ctx context.Context) error {
	var senders sync.WaitGroup
	for range p.senders {
		senders.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case s := <-p.jobs:
					p.run(ctx, s)
				}
			}
		})
	}
	senders.Wait()
	return nil
}

// run sends one status.
func (p *publisher) run(ctx context.Context, s *sending) {
	within, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	late := time.AfterFunc(hubTimeout, func() { p.slow.Store(true) })
	var err error
	if defect := reconcile.Contain(ctx, "a status", func() { err = s.send(within) }); defect != nil {
		err = defect
	}
	if late.Stop() {
		p.slow.Store(false)
	}
	s.result <- err
	if s.left.Load() {
		s.finish()
	}
}

// finish hands the result to who does not wait for it, once.
func (s *sending) finish() {
	s.once.Do(func() { s.ended(<-s.result) })
}

// publish sends a status. It returns false when all senders are busy, and waits for the result only as long as the hub
// usually takes; after that known is false, and ended is called with the result.
func (p *publisher) publish(
	ctx context.Context, send func(context.Context) error, ended func(error),
) (taken, known bool, err error) {
	s := &sending{send: send, ended: ended, result: make(chan error, 1)}
	select {
	case p.jobs <- s:
	default:
		return false, false, nil
	}
	if !p.slow.Load() {
		timer := time.NewTimer(hubTimeout)
		defer timer.Stop()
		select {
		case err := <-s.result:
			return true, true, err
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	s.left.Store(true)
	if len(s.result) > 0 { // it came at this very moment
		s.finish()
	}
	return true, false, nil
}
