package page

import (
	"context"
	"sync"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
)

const (
	// share is how many times as long as a read takes the fleet is left alone after it, so that a large fleet costs its
	// hub a quarter of what reading it all the time would.
	share = 3
	// oldest is how old such an answer may be.
	oldest = time.Minute
)

// keeper keeps the fleet as it was read last.
type keeper struct {
	read func(context.Context) (*facts.Snapshot, error)
	// now is the clock, and every the least time between two reads. still reports that one read is enough.
	now   func() time.Time
	every time.Duration
	still bool
	// patience is how long a request waits for a read while there is an older answer.
	patience time.Duration

	wanted chan struct{}

	mutex   sync.Mutex
	reading chan struct{} // Closed at the end of the read that goes on; nil while none does.
	last    kept
}

// kept is a fleet with how it was read.
type kept struct {
	*facts.Snapshot

	// at is when the snapshot was read, and err why the last read failed; nil where it did not.
	at  time.Time
	err error

	ended time.Time
	took  time.Duration
}

func newKeeper(read func(context.Context) (*facts.Snapshot, error)) *keeper {
	return &keeper{read: read, patience: time.Second, wanted: make(chan struct{}, 1)}
}

// keep reads the fleet when a request wants it, until the context ends.
func (k *keeper) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wanted:
		}
		begin := k.now()
		snapshot, err := k.read(ctx)
		k.mutex.Lock()
		k.last.err, k.last.ended = err, k.now()
		k.last.took = k.last.ended.Sub(begin)
		if err == nil {
			k.last.Snapshot, k.last.at = snapshot, k.last.ended
		}
		close(k.reading)
		k.reading = nil
		k.mutex.Unlock()
	}
}

// get returns the fleet: as it was read last where that is fresh, or where a read takes too long.
func (k *keeper) get(ctx context.Context) (kept, error) {
	last, done := k.want()
	if done == nil {
		return last, nil
	}
	soon := ctx
	if last.Snapshot != nil && k.now().Sub(last.at) < oldest {
		var stop context.CancelFunc
		soon, stop = context.WithTimeout(ctx, k.patience)
		defer stop()
	}
	select {
	case <-done:
	case <-soon.Done():
		if ctx.Err() != nil {
			return kept{}, ctx.Err()
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.last, nil
}

// want returns what was read last, and the end of the read that goes on now; nil where it is fresh.
func (k *keeper) want() (kept, <-chan struct{}) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	pause := max(k.every, share*k.last.took)
	fresh := !k.last.ended.IsZero() && (k.now().Sub(k.last.ended) < pause || k.still && k.last.Snapshot != nil)
	if k.reading == nil && !fresh {
		k.reading = make(chan struct{})
		k.wanted <- struct{}{}
	}
	if k.reading == nil {
		return k.last, nil
	}
	return k.last, k.reading
}
