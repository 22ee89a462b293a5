package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hubLeases is the hub as the heartbeat sees it; it counts the heartbeats that it stored.
type hubLeases struct {
	away  atomic.Bool
	beats atomic.Int64
	// behind is by how much the clock of the agent is behind the hub's, which notes when it stores a heartbeat.
	behind atomic.Int64
}

func (h *hubLeases) sent() int { return int(h.beats.Load()) }

var errAway = errors.New("the hub is away")

func (h *hubLeases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if h.away.Load() {
		return nil, errAway
	}
	return &coordinationv1.Lease{}, nil
}

func (h *hubLeases) Create(
	context.Context, *coordinationv1.Lease, metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	return nil, errors.New("the agent has no right to create a lease on the hub")
}

func (h *hubLeases) Update(
	_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if h.away.Load() {
		return nil, errAway
	}
	h.beats.Add(1)
	if behind := h.behind.Load(); behind > 0 {
		at := metav1.NewTime(l.Spec.RenewTime.Add(time.Duration(behind)))
		l.ManagedFields = []metav1.ManagedFieldsEntry{{
			Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`),
		}}
	}
	return l, nil
}

// Shows: registration/heartbeat-duration
func TestHeartbeatFollowsWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &hubLeases{}
		h := &Heartbeat{Leases: hub, Cluster: "c1"}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Start(ctx) }()
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		pass(10 * time.Minute)
		assert.Zero(t, hub.sent(), "nothing is wanted, nothing is sent")
		assert.True(t, h.Renewed().IsZero())

		h.SetPeriod(time.Minute)
		pass(time.Second)
		assert.Equal(t, 1, hub.sent(), "the first heartbeat comes at once")
		h.SetPeriod(time.Minute)
		pass(10 * time.Minute)
		assert.InDelta(t, 9, hub.sent(), 2)

		before := hub.sent()
		h.SetPeriod(10 * time.Second)
		pass(time.Minute)
		assert.InDelta(t, before+6, hub.sent(), 1, "another period counts at once")

		hub.away.Store(true)
		pass(5 * time.Minute)
		silent := h.Renewed()
		hub.away.Store(false)
		pass(10 * time.Second)
		assert.True(t, h.Renewed().After(silent), "the heartbeat survives a hub that is away")

		h.SetPeriod(0)
		synctest.Wait()
		before = hub.sent()
		pass(time.Hour)
		assert.Equal(t, before, hub.sent())

		cancel()
		require.NoError(t, <-ended)
	})
}

func TestAHeartbeatCountsByTheClockOfTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &hubLeases{}
		hub.behind.Store(int64(4 * time.Minute))
		h := &Heartbeat{Leases: hub, Cluster: "c1"}
		h.SetPeriod(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Start(ctx) }()
		synctest.Wait()
		// The hub gave the cluster up three minutes ahead of our clock, and has stored a heartbeat since.
		f := facts{now: time.Now(), cluster: leaseStopped(), health: healthy(), lastHeartbeat: h.Renewed()}
		stopped := &f.cluster.Status.Conditions[len(f.cluster.Status.Conditions)-1]
		stopped.LastTransitionTime = metav1.NewTime(time.Now().Add(3 * time.Minute))
		assert.Equal(t, available, decide(f).availability)

		cancel()
		require.NoError(t, <-ended)
	})
}

func TestTheEndOfFailingHeartbeatsIsLoggedWithTheirError(t *testing.T) {
	var entries []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { entries = append(entries, args) }, funcr.Options{}))
	var said string
	h := &Heartbeat{Cluster: "c1", OnFailure: func(text string) { said = text }}
	h.report(ctx, time.Time{}, errAway)
	assert.Equal(t, "the hub does not take heartbeats: "+errAway.Error(), said)
	h.report(ctx, time.Time{}, errors.New("still away"))
	require.Len(t, entries, 1, "a row of failures is one entry")
	h.report(ctx, time.Now(), nil)
	require.Len(t, entries, 2)
	assert.Empty(t, said)
	assert.Contains(t, entries[1], "gets heartbeats again")
	assert.Contains(t, entries[1], errAway.Error(), "who leaves out the failure leaves out its end")
	h.report(ctx, time.Now(), nil)
	assert.Len(t, entries, 2)
	h.report(ctx, time.Now(), errAway)
	h.forget()
	assert.Empty(t, said, "heartbeats that are not sent do not fail")
}
