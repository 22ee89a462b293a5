package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// follower is one of several agents for a cluster.
type follower struct {
	stop  context.CancelFunc
	leads chan struct{}
	ended chan error
}

// newFollower starts an agent that leads until it is stopped and takes a moment to let go.
func newFollower(t *testing.T, e election) follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := follower{stop: stop, leads: make(chan struct{}, 10), ended: make(chan error, 1)}
	go func() {
		f.ended <- e.follow(ctx, func(ctx context.Context) error {
			f.leads <- struct{}{}
			<-ctx.Done()
			time.Sleep(time.Second) // of the fake clock
			return nil
		})
	}()
	return f
}

func TestOneAgentLeadsAndAnotherFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		e := election{client: client.CoordinationV1(), namespace: "ns"}
		first := newFollower(t, e)
		synctest.Wait()
		require.Len(t, first.leads, 1, "nobody else is there, so it leads at once")
		second := newFollower(t, e)
		time.Sleep(5 * leaseDuration)
		synctest.Wait()
		assert.Empty(t, second.leads, "the lease is renewed, so the second one waits")

		first.stop()
		synctest.Wait()
		assert.Empty(t, first.ended, "it lets go first")
		lock, err := client.CoordinationV1().Leases("ns").Get(t.Context(), LeaderLease, metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, *lock.Spec.HolderIdentity, "and releases the lease only then")
		require.NoError(t, <-first.ended)
		time.Sleep(3 * retryPeriod)
		synctest.Wait()
		assert.Len(t, second.leads, 1, "a lease that was released is taken at the next look")
		second.stop()
		require.NoError(t, <-second.ended)
	})
}

func TestAnAgentThatNeverLedEndsWhenItIsToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := election{client: fake.NewClientset().CoordinationV1(), namespace: "ns"}
		first := newFollower(t, e)
		synctest.Wait()
		second := newFollower(t, e)
		synctest.Wait()
		second.stop()
		require.NoError(t, <-second.ended)
		assert.Empty(t, second.leads)
		first.stop()
		require.NoError(t, <-first.ended)
	})
}

func TestALostLeadEndsThePhasesAndNotTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var away atomic.Bool
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("the API server is away")
		})
		f := newFollower(t, election{client: client.CoordinationV1(), namespace: "ns"})
		synctest.Wait()
		require.Len(t, f.leads, 1)
		away.Store(true)
		time.Sleep(renewDeadline + 2*retryPeriod)
		synctest.Wait()
		away.Store(false)
		time.Sleep(2 * leaseDuration)
		synctest.Wait()
		assert.Empty(t, f.ended, "the process goes on")
		assert.Len(t, f.leads, 2, "and leads again when the API server is back")
		f.stop()
		require.NoError(t, <-f.ended)
	})
}
