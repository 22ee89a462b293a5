package virtual

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// startAgain is the pause before a program that ended by itself is started again.
const startAgain = 10 * time.Second

// program is a program of the fleet.
type program struct {
	name string
	run  func(ctx context.Context) error
	// failed is told when it ends by itself; it is started again then, as a kubelet does.
	failed func(error)
	log    logr.Logger
	// turn has room for one that stops where several may at a time; nil elsewhere.
	turn chan struct{}

	mu     sync.Mutex
	cancel context.CancelFunc
	over   chan struct{}
}

// start starts the program, unless it runs.
func (p *program) start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, p.cancel = context.WithCancel(ctrl.LoggerInto(ctx, p.log.WithName(p.name)))
	over := make(chan struct{})
	p.over = over
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			err := p.run(ctx)
			if ctx.Err() != nil {
				return
			}
			p.failed(fmt.Errorf("%s ended: %w", p.name, err))
			select {
			case <-ctx.Done():
			case <-time.After(startAgain):
			}
		}
	}()
}

// halt ends the program and does not wait until it is over.
func (p *program) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}

// stop ends the program and waits until it is over. A queue of controller-runtime that is about to hand out a request
// when it ends blocks its workers, so nothing may be under way.
func (p *program) stop() {
	if p.turn != nil {
		p.turn <- struct{}{}
		defer func() { <-p.turn }()
	}
	synctest.Wait()
	p.mu.Lock()
	cancel, over := p.cancel, p.over
	p.cancel = nil
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		<-over
	}
}
