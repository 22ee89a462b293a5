package reconcile

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// runningManager returns a manager that runs until the test ends.
func runningManager(t *testing.T) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return &informertest.FakeInformers{}, nil },
	})
	require.NoError(t, err)
	started := make(chan struct{})
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return nil
	})))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); assert.NoError(t, mgr.Start(ctx)) }()
	t.Cleanup(func() { cancel(); <-done })
	<-started
	return mgr
}

// setup is a Setup of one function.
type setup func(ctrl.Manager) error

func (s setup) SetupWithManager(mgr ctrl.Manager) error { return s(mgr) }

// slowSource enqueues a request when it starts, and syncs when ready is closed.
type slowSource struct {
	ready   chan struct{}
	waiting atomic.Bool
}

func (*slowSource) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	queue.Add(ctrl.Request{})
	return nil
}

func (s *slowSource) WaitForSync(ctx context.Context) error {
	s.waiting.Store(true)
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAControllerThatIsAddedWhileTheManagerRunsWaitsForItsSources(t *testing.T) {
	mgr := runningManager(t)
	slow := &slowSource{ready: make(chan struct{})}
	var early, passes atomic.Int32
	err := SetupAll(mgr, setup(func(mgr ctrl.Manager) error {
		options := Options(1)
		options.Reconciler = reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			select {
			case <-slow.ready:
			default:
				early.Add(1)
			}
			passes.Add(1)
			return ctrl.Result{}, nil
		})
		// The builder does the same: the controller is added to the manager when it is made, and gets its sources after.
		c, err := controller.New("slow", mgr, options)
		if err != nil {
			return err
		}
		started := func() bool { return early.Load() > 0 }
		assert.Never(t, started, 50*time.Millisecond, time.Millisecond, "time for a controller that has started")
		return c.Watch(slow)
	}))
	require.NoError(t, err)
	require.Eventually(t, slow.waiting.Load, 10*time.Second, time.Millisecond)
	assert.Zero(t, passes.Load(), "no pass before the source has synced")
	close(slow.ready)
	require.Eventually(t, func() bool { return passes.Load() == 1 }, 10*time.Second, time.Millisecond)
	assert.Zero(t, early.Load())
}

func TestNothingIsAddedWhenOneSetupFails(t *testing.T) {
	mgr := runningManager(t)
	wrong := errors.New("no")
	var ran atomic.Bool
	err := SetupAll(mgr, setup(func(mgr ctrl.Manager) error {
		return mgr.Add(manager.RunnableFunc(func(context.Context) error { ran.Store(true); return nil }))
	}), setup(func(ctrl.Manager) error { return wrong }))
	require.ErrorIs(t, err, wrong)
	assert.False(t, ran.Load())
}
