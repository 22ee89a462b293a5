package crash_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
)

// parallel is how many agents live at once.
const parallel = 4

// spare is how many more deaths are tried than the undisturbed agent made writes: how many there are depends on races
// that are lost.
const spare = 4

// Shows: registration/killed-after-any-write
func TestAnAgentKilledAfterAnyWriteOfJoiningAndRegisteringEndsTheSame(t *testing.T) {
	serveRequests(t)
	undisturbed := newSoul(t, "join-0")
	a := &axe{}
	stop := undisturbed.live(a)
	undisturbed.accept()
	want := undisturbed.settle()
	stop()
	writes := a.made()
	t.Logf("the undisturbed agent made %d writes: %v", len(writes), writes)
	require.Equal(t, map[string]int{
		" kubernetes.io/kube-apiserver-client": 1, "crash kubernetes.io/kube-apiserver-client": 1, "crash " + signer: 1,
	}, want.Requests)

	inParallel(t, len(writes)+spare, func(t *testing.T, at int) *axe {
		t.Helper()
		s := newSoul(t, fmt.Sprintf("join-%d", at))
		a := &axe{at: at}
		stop := s.live(a)
		// The first life may end before the cluster exists, and the second one goes on from wherever it ended.
		accepted := make(chan struct{})
		go func() { defer close(accepted); s.accept() }()
		s.untilDeathOrEnd(a)
		stop()
		second := s.live(&axe{})
		<-accepted
		assert.Equal(t, want, s.settle(), "killed after %s", last(a))
		second()
		return a
	})
}

// Shows: registration/no-second-certificate
func TestAnAgentKilledAfterAnyWriteOfARotationEndsTheSame(t *testing.T) {
	serveRequests(t)
	rotate := func(t *testing.T, at int) (state, *axe) {
		t.Helper()
		s := newSoul(t, fmt.Sprintf("rotate-%d", at))
		stop := s.live(&axe{})
		s.accept()
		s.settle()
		stop()
		s.age()
		a := &axe{at: at}
		stop = s.live(a)
		if s.untilDeathOrEnd(a) {
			stop()
			stop = s.live(&axe{})
		}
		end := s.settle()
		stop()
		return end, a
	}
	want, a := rotate(t, 0)
	writes := a.made()
	t.Logf("the undisturbed agent made %d writes: %v", len(writes), writes)
	require.Equal(t, map[string]int{
		" kubernetes.io/kube-apiserver-client": 2, "crash kubernetes.io/kube-apiserver-client": 2, "crash " + signer: 2,
	}, want.Requests, "one more of each")

	inParallel(t, len(writes)+spare, func(t *testing.T, at int) *axe {
		t.Helper()
		end, a := rotate(t, at)
		assert.Equal(t, want, end, "killed after %s", last(a))
		return a
	})
}

// inParallel runs a death at each write from 1 to n, and on from there one by one until an agent came to rest before
// its death: then there was no write left to die after, and one agent or another died after every single write.
func inParallel(t *testing.T, n int, run func(t *testing.T, at int) *axe) {
	t.Helper()
	slots, axes := make(chan struct{}, parallel), make([]atomic.Pointer[axe], 3*n)
	died := func(at int) bool { a := axes[at].Load(); return a != nil && a.hasFallen() }
	t.Run("killed", func(t *testing.T) {
		for at := 1; at <= n; at++ {
			t.Run(fmt.Sprintf("after write %d", at), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				axes[at].Store(run(t, at))
			})
		}
	})
	for at := n + 1; died(at-1) && !t.Failed(); at++ {
		require.Less(t, at, len(axes), "the agent does not come to rest")
		axes[at].Store(run(t, at))
	}
	deaths, most := 0, 0
	for at := range axes {
		switch a := axes[at].Load(); {
		case a == nil:
		case a.hasFallen():
			deaths++
		default:
			most = max(most, len(a.made()))
		}
	}
	t.Logf("%d agents died, each after another write", deaths)
	// The undisturbed agent is no measure: alone on the machine it writes its status more often.
	assert.GreaterOrEqual(t, deaths, most-spare, "agents came to rest after more writes than others died after")
}

// settle waits until everything is as it should be in the end, and returns it.
func (s *soul) settle() state {
	s.t.Helper()
	var end state
	eventually(s.t, "the agent of "+s.name+" to come to rest", func(ctx context.Context) error {
		var err error
		end, err = s.end(ctx)
		return err
	})
	return end
}

// untilDeathOrEnd waits until the axe fell, true, or the agent came to rest without it, false.
func (s *soul) untilDeathOrEnd(a *axe) bool {
	s.t.Helper()
	eventually(s.t, "the agent of "+s.name+" to die or to come to rest", func(ctx context.Context) error {
		if a.hasFallen() {
			return nil
		}
		_, err := s.end(ctx)
		return err
	})
	return a.hasFallen()
}

// age replaces every certificate by one for the same key that is due and still good.
func (s *soul) age() {
	s.t.Helper()
	for _, c := range s.wanted() {
		var secret corev1.Secret
		require.NoError(s.t, s.spoke.Get(s.t.Context(), key(c.namespace, c.secret), &secret))
		before := secret.DeepCopy()
		pair := csr.PairOf(&secret)
		request, err := c.request.Build(pair.Key)
		require.NoError(s.t, err)
		now := time.Now()
		pair.Certificate, err = shared.Hub.SignRequest(request.Spec.Request, now.Add(-9*time.Hour), now.Add(time.Hour))
		require.NoError(s.t, err)
		pair.IssuedAt = time.Time{}
		pair.Put(&secret)
		require.NoError(s.t, s.spoke.Patch(s.t.Context(), &secret, client.MergeFrom(before)))
	}
}

// last names the write after which the agent died.
func last(a *axe) string {
	if writes := a.made(); a.hasFallen() && a.at <= len(writes) {
		return writes[a.at-1]
	}
	return "nothing"
}
