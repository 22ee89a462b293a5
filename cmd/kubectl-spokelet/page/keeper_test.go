package page

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

// reads is a keeper whose reads a test answers.
type reads struct {
	*keeper

	begun chan chan error
	now   time.Time
	mutex sync.Mutex
}

// kept starts a keeper.
func keeping(t *testing.T) *reads {
	t.Helper()
	r := &reads{begun: make(chan chan error, 10), now: simulated.Noon()}
	r.keeper = newKeeper(func(ctx context.Context) (*facts.Snapshot, error) {
		answer := make(chan error)
		r.begun <- answer
		select {
		case err := <-answer:
			if err != nil {
				return nil, err
			}
			return &facts.Snapshot{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	r.keeper.now, r.every, r.patience = r.clock, 5*time.Second, 0
	go r.keep(t.Context())
	return r
}

func (r *reads) clock() time.Time {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.now
}

func (r *reads) pass(d time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.now = r.now.Add(d)
}

// first reads the fleet a first time, which takes so long.
func (r *reads) first(t *testing.T, takes time.Duration) {
	t.Helper()
	got := make(chan kept)
	go func() {
		last, _ := r.get(t.Context())
		got <- last
	}()
	answer := <-r.begun
	r.pass(takes)
	answer <- nil
	require.NotNil(t, (<-got).Snapshot)
}

func TestSeveralRequestsAreOneRead(t *testing.T) {
	r := keeping(t)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			last, _ := r.get(t.Context())
			assert.NotNil(t, last.Snapshot)
		})
	}
	<-r.begun <- nil
	wait.Wait()
	assert.Empty(t, r.begun)
}

func TestAFleetIsLeftAloneForAWhileAfterARead(t *testing.T) {
	for sentence, tc := range map[string]struct {
		takes, after time.Duration
		again        bool
	}{
		"a small one for some seconds":       {time.Second, 4 * time.Second, false},
		"and not longer":                     {time.Second, 6 * time.Second, true},
		"a large one for as long as it took": {4 * time.Second, 11 * time.Second, false},
		"three times, and not longer":        {4 * time.Second, 13 * time.Second, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := keeping(t)
			r.first(t, tc.takes)
			r.pass(tc.after)
			last, err := r.get(t.Context())
			require.NoError(t, err)
			require.NotNil(t, last.Snapshot, "what was read is an answer while it is read again")
			if !tc.again {
				assert.Empty(t, r.begun)
				return
			}
			<-r.begun <- nil
		})
	}
}

func TestABundleIsReadOnce(t *testing.T) {
	r := keeping(t)
	r.still = true
	r.first(t, 0)
	r.pass(time.Hour)
	_, err := r.get(t.Context())
	require.NoError(t, err)
	assert.Empty(t, r.begun)
}

func TestWhatIsTooOldIsWaitedForAndAClientMayGo(t *testing.T) {
	r := keeping(t)
	r.first(t, 0)
	r.pass(2 * oldest)
	ctx, gone := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := r.get(ctx)
		ended <- err
	}()
	answer := <-r.begun
	gone()
	require.ErrorIs(t, <-ended, context.Canceled)
	answer <- errors.New("the hub is away")
	last, err := r.get(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, last.err, "the hub is away")
	assert.NotNil(t, last.Snapshot)
}
