package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// publisher sends the statuses of works to the hub, several at a time and one of each work, so that no pass has to wait
// for a link that is slow or a hub that does not answer. What is sent at the same time shares the link, so as many are
// sent together as it has shown to carry. Another one sends their finalizers, which are small. It is a Runnable.
type publisher struct {
	// senders is how many statuses are sent at the same time at most.
	senders int
	clock   clock.PassiveClock
	// jobs has room for one status of each sender: a pass may follow another one before its sender is back.
	jobs chan *sending
	// small is set for requests of which a link carries all at the same time.
	small bool
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

func newPublisher(of lane, senders int, c clock.PassiveClock) *publisher {
	return &publisher{senders: senders, small: of == finalizers, clock: c, jobs: make(chan *sending, senders)}
}

// trip is how sending one status went.
type trip struct {
	took      time.Duration
	delivered bool
}

// together returns how many statuses may be sent at the same time after one that shared the link with all of sent: half
// as many where it took half of its time or longer, also when it failed then, and one more where it was delivered
// sooner with as many under way as there might be. So a link of which nothing is known begins with one, and what one
// small status after the other says about a link counts for no crowd of large ones.
func together(now, most, sent int, last trip) int {
	switch {
	case last.took >= publishTimeout/2:
		return max(now/2, 1)
	case last.delivered && sent >= now:
		return min(now+1, most)
	}
	return now // a hub that refuses at once says nothing about the link
}

// Start implements manager.Runnable.
func (p *publisher) Start(ctx context.Context) error {
	var senders sync.WaitGroup
	defer senders.Wait()
	trips := make(chan trip, p.senders)
	limit, sent := 1, 0
	if p.small {
		limit = p.senders
	}
	for {
		jobs := p.jobs
		if sent >= limit {
			jobs = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-jobs:
			sent++
			senders.Go(func() { trips <- p.run(ctx, s) })
		case last := <-trips:
			if !p.small {
				limit = together(limit, p.senders, sent, last)
			}
			sent--
		}
	}
}

// run sends one status.
func (p *publisher) run(ctx context.Context, s *sending) trip {
	within, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	began := p.clock.Now()
	late := time.AfterFunc(hubTimeout, func() { p.slow.Store(true) })
	var err error
	if defect := reconcile.Contain(ctx, "a status", func() { err = s.send(within) }); defect != nil {
		err = defect
	}
	if late.Stop() {
		p.slow.Store(false)
	}
	took := p.clock.Since(began)
	s.result <- err
	if s.left.Load() {
		s.finish()
	}
	return trip{took: took, delivered: err == nil}
}

// finish hands the result to who does not wait for it, once.
func (s *sending) finish() {
	s.once.Do(func() { s.ended(<-s.result) })
}

// publish sends a status. It returns false when as many wait already as there are senders, and waits for the result
// only as long as the hub usually takes; after that known is false, and ended is called with the result.
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
