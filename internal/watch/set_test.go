package watch

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASetRunsOneWatchForEachWantedKey(t *testing.T) {
	var mu sync.Mutex
	wanted, runs, ran := []string{"a", "b"}, map[string]int{}, map[string]bool{}
	s := &Set[string]{
		Wanted: func(_ context.Context, running func(string) bool) []string {
			mu.Lock()
			defer mu.Unlock()
			for _, key := range []string{"a", "b", "c"} {
				ran[key] = running(key)
			}
			return wanted
		},
		Start: func(key string) func(context.Context) {
			return func(ctx context.Context) {
				mu.Lock()
				runs[key]++
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				runs[key]--
				mu.Unlock()
			}
		},
		Changed: NewTrigger(),
	}
	have := func(want map[string]int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, key := range []string{"a", "b", "c"} {
				if runs[key] != want[key] {
					return false
				}
			}
			return true
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	require.Eventually(t, have(map[string]int{"a": 1, "b": 1}), patience, tick)

	mu.Lock()
	wanted = []string{"b", "c"}
	mu.Unlock()
	s.Changed.Fire()
	require.Eventually(t, have(map[string]int{"b": 1, "c": 1}), patience, tick)
	mu.Lock()
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": false}, ran)
	mu.Unlock()

	cancel()
	<-done
	assert.True(t, have(nil)(), "Run returns when all watches have ended")
}

func TestATriggerHoldsOneSignal(t *testing.T) {
	trigger := NewTrigger()
	assert.Empty(t, trigger)
	trigger.Fire()
	trigger.Fire()
	assert.Len(t, trigger, 1)
}
