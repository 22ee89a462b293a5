package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/internal/command"
)

// follower is one of several agents for a cluster.
type follower struct {
	stop  context.CancelFunc
	leads chan struct{}
	ended chan error
}

// times are those of the Elections.
var times = command.Election{
	LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
}

// both, registration and works are the Leases of agents with these duties.
var both, registration, works = Leases(true, true), Leases(true, false), Leases(false, true)

// candidate is an agent that wants the Leases.
func candidate(client *fake.Clientset, name string, leases []string) Election {
	return Election{
		Times: times, Client: client.CoordinationV1(), Pods: client.CoreV1(), Namespace: "ns", Leases: leases, Identity: name,
		Clock: clock.RealClock{}, Waiting: func(string) {},
	}
}

// newFollower starts an agent that leads until it is stopped and takes a moment to let go.
func newFollower(t *testing.T, e Election) follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := follower{stop: stop, leads: make(chan struct{}, 10), ended: make(chan error, 1)}
	go func() {
		f.ended <- e.Run(ctx, func(ctx context.Context) error {
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
		first := newFollower(t, candidate(client, "first", registration))
		synctest.Wait()
		require.Len(t, first.leads, 1, "nobody else is there, so it leads at once")
		second := newFollower(t, candidate(client, "second", registration))
		time.Sleep(5 * times.LeaseDuration)
		synctest.Wait()
		assert.Empty(t, second.leads, "the lease is renewed, so the second one waits")

		first.stop()
		synctest.Wait()
		assert.Empty(t, first.ended, "it lets go first")
		lock, err := client.CoordinationV1().Leases("ns").Get(t.Context(), LeaseRegistration, metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, *lock.Spec.HolderIdentity, "and releases the lease only then")
		require.NoError(t, <-first.ended)
		time.Sleep(vacantPeriod)
		synctest.Wait()
		assert.Len(t, second.leads, 1, "a lease that was released is taken at the next look")
		second.stop()
		require.NoError(t, <-second.ended)
	})
}

func TestAnAgentThatNeverLedEndsWhenItIsToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first := newFollower(t, candidate(client, "first", registration))
		synctest.Wait()
		second := newFollower(t, candidate(client, "second", registration))
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
		f := newFollower(t, candidate(client, "first", registration))
		synctest.Wait()
		require.Len(t, f.leads, 1)
		away.Store(true)
		time.Sleep(times.RenewDeadline + 2*times.RetryPeriod)
		synctest.Wait()
		away.Store(false)
		time.Sleep(2 * times.LeaseDuration)
		synctest.Wait()
		assert.Empty(t, f.ended, "the process goes on")
		assert.Len(t, f.leads, 2, "and leads again when the API server is back")
		f.stop()
		require.NoError(t, <-f.ended)
	})
}

func TestTheLeasesOfDuties(t *testing.T) {
	assert.Equal(t, []string{"registration-agent-lock"}, registration)
	assert.Equal(t, []string{"work-agent-lock"}, works)
	assert.Equal(t, []string{"klusterlet-agent-lock", "registration-agent-lock", "work-agent-lock"}, both)
}

func TestAnAgentWaitsForWhoDoesAPartOrAllOfWhatItDoes(t *testing.T) {
	tests := map[string]struct {
		first, second []string
		waits         bool
	}{
		"all waits for all":                   {both, both, true},
		"all waits for registration":          {registration, both, true},
		"all waits for works":                 {works, both, true},
		"registration waits for all":          {both, registration, true},
		"works wait for all":                  {both, works, true},
		"registration and works do not wait":  {registration, works, false},
		"works and registration do not wait":  {works, registration, false},
		"registration waits for registration": {registration, registration, true},
		"works wait for works":                {works, works, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				first := newFollower(t, candidate(client, "first", tc.first))
				synctest.Wait()
				require.Len(t, first.leads, 1)
				second := newFollower(t, candidate(client, "second", tc.second))
				time.Sleep(times.LeaseDuration)
				synctest.Wait()
				if tc.waits {
					require.Empty(t, second.leads)
				} else {
					require.Len(t, second.leads, 1)
				}
				first.stop()
				require.NoError(t, <-first.ended)
				time.Sleep(vacantPeriod)
				synctest.Wait()
				assert.Len(t, second.leads, 1, "what was released is taken soon")
				second.stop()
				require.NoError(t, <-second.ended)
			})
		})
	}
}

func TestALeaseOfAnAgentThatDied(t *testing.T) {
	lapse := func(t *testing.T, holder string, after time.Duration) bool {
		t.Helper()
		client := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: LeaseRegistration},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](60), RenewTime: ptr.To(metav1.NowMicro()),
			},
		})
		f := newFollower(t, candidate(client, "this-pod", registration))
		time.Sleep(after)
		synctest.Wait()
		leads := len(f.leads) == 1
		f.stop()
		require.NoError(t, <-f.ended)
		return leads
	}
	synctest.Test(t, func(t *testing.T) {
		assert.False(t, lapse(t, "other-pod", 55*time.Second), "another pod may still be at work")
		assert.True(t, lapse(t, "other-pod", 65*time.Second), "it did not renew its Lease for as long as it said")
		assert.True(t, lapse(t, "this-pod", 0), "the process before this one in the same pod is dead")
	})
}
