package bootstrap

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr/issue"
)

// returning is a Return from a hub among candidates, with its clock, whose end is told.
func returning(t *testing.T, found []Candidate, stored *issue.HubServer, from Candidate,
) (*Return, *clocktesting.FakeClock, chan string) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	require.NoError(t, authorizationv1.AddToScheme(scheme))
	clock, ended := clocktesting.NewFakeClock(time.Now()), make(chan string, 1)
	return &Return{
		Selector: &Selector{Scheme: scheme}, Candidates: found, Stored: stored, Joining: from.Server, Cluster: "c1",
		Clock: clock, End: func(reason string) { ended <- reason },
	}, clock, ended
}

// Shows: registration/comes-back
func TestOnlyAHubThatComesFirstIsLookedAtWhileAnotherIsJoined(t *testing.T) {
	a, b, c := candidateFor("https://a"), candidateFor("https://b"), candidateFor("https://c")
	broken := Candidate{Problem: assert.AnError}
	for name, tc := range map[string]struct {
		stored *issue.HubServer
		from   Candidate
		want   []Candidate
	}{
		"the hub of the credential":                       {&a.Server, b, []Candidate{a}},
		"which may be the last one of the configuration":  {&c.Server, a, []Candidate{c}},
		"and the ones before the hub that is joined":      {&c.Server, b, []Candidate{c, a}},
		"those alone without a credential":                {nil, b, []Candidate{a}},
		"none while the hub of the credential is joined":  {&b.Server, b, nil},
		"none while the first one is, without credential": {nil, a, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := returning(t, []Candidate{broken, a, b, c}, tc.stored, tc.from)
			assert.Equal(t, tc.want, r.before())
		})
	}
}

// Shows: registration/comes-back
func TestAHubIsLookedAtUntilItAcceptsTheCluster(t *testing.T) {
	var accepts atomic.Bool
	var looks atomic.Int32
	own := hubThat(t, func() bool { looks.Add(1); return accepts.Load() })
	other := hubOf(t, false)
	r, clock, ended := returning(t, []Candidate{own, other}, &own.Server, other)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	pass := func(pause time.Duration) {
		require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
		clock.Step(pause)
	}
	pass(firstLook - time.Nanosecond)
	require.True(t, clock.HasWaiters())
	clock.Step(time.Nanosecond)
	require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
	assert.EqualValues(t, 1, looks.Load())
	assert.Empty(t, ended, "a hub that has not accepted the cluster is no better than the one that is joined")
	accepts.Store(true)
	pass(2 * firstLook)
	assert.Contains(t, <-ended, "hub "+own.Server.Server+", which has accepted the cluster")
	require.NoError(t, <-done)
}
