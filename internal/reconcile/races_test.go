package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// run runs a controller whose passes end as given, and counts them.
func run(t *testing.T, end func(pass int64) Outcome) *atomic.Int64 {
	t.Helper()
	var passes atomic.Int64
	options := Options(1)
	options.LogConstructor = func(*reconcile.Request) logr.Logger { return logr.Discard() }
	options.Reconciler = reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		return end(passes.Add(1)).Settle(time.Now())
	})
	c, err := controller.NewUnmanaged(t.Name(), options)
	require.NoError(t, err)
	require.NoError(t, c.Watch(source.Func(
		func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
			queue.Add(ctrl.Request{})
			return nil
		})))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return &passes
}

func TestARaceThatIsLostAgainAndAgainBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := run(t, func(int64) Outcome { return FromError(errRace) })
		time.Sleep(100 * time.Millisecond)
		assert.GreaterOrEqual(t, passes.Load(), int64(2), "the first repetitions come quickly")
		time.Sleep(10 * time.Minute)
		assert.Less(t, passes.Load(), int64(30), "then they become rare")
		assert.Greater(t, passes.Load(), int64(15), "but do not end")
	})
}

func TestARaceThatIsWonEndsTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := run(t, func(pass int64) Outcome {
			if pass%10 == 0 {
				return DoneUntil(time.Now().Add(time.Millisecond))
			}
			return FromError(errRace)
		})
		// Nine lost races in a row take about ten seconds; without the reset, sixty of them would take an hour.
		time.Sleep(2 * time.Minute)
		assert.Greater(t, passes.Load(), int64(60))
	})
}
