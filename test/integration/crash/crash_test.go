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

	"github.com/spokelet/spokelet/csr/issue"
)

// parallel is how many agents live at once.
const parallel = 4

// Shows: registration/killed-after-any-write, invariants/killed-agent
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

	inParallel(t, writes, func(t *testing.T, i int) *axe {
		t.Helper()
		s := newSoul(t, fmt.Sprintf("join-%d", i))
		a := &axe{at: writes[i-1]}
		stop := s.live(a)
		// The first life may end before the cluster exists, and the second one goes on from wherever it ended.
		accepted := make(chan struct{})
		go func() { defer close(accepted); s.accept() }()
		s.untilDeathOrEnd(a)
		stop()
		second := s.live(&axe{})
		<-accepted
		assert.Equal(t, want, s.settle(), "killed after %s", a.at)
		second()
		return a
	})
}

// Shows: registration/no-second-certificate, invariants/killed-agent
func TestAnAgentKilledAfterAnyWriteOfARotationEndsTheSame(t *testing.T) {
	serveRequests(t)
	rotate := func(t *testing.T, i int, at write) (state, *axe) {
		t.Helper()
		s := newSoul(t, fmt.Sprintf("rotate-%d", i))
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
	want, a := rotate(t, 0, write{})
	writes := a.made()
	t.Logf("the undisturbed agent made %d writes: %v", len(writes), writes)
	require.Equal(t, map[string]int{
		" kubernetes.io/kube-apiserver-client": 2, "crash kubernetes.io/kube-apiserver-client": 2, "crash " + signer: 2,
	}, want.Requests, "one more of each")

	inParallel(t, writes, func(t *testing.T, i int) *axe {
		t.Helper()
		end, a := rotate(t, i, writes[i-1])
		assert.Equal(t, want, end, "killed after %s", a.at)
		return a
	})
}

// inParallel runs a death at each write of the undisturbed agent, from 1. Every agent dies that was to die at a write
// that lasts; the others may come to rest before.
func inParallel(t *testing.T, writes []write, run func(t *testing.T, i int) *axe) {
	t.Helper()
	var deaths atomic.Int32
	slots := make(chan struct{}, parallel)
	t.Run("killed", func(t *testing.T) {
		for i, at := range writes {
			t.Run(fmt.Sprintf("%d after %s", i+1, at), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				a := run(t, i+1)
				if a.hasFallen() {
					deaths.Add(1)
				} else {
					assert.False(t, at.lasts(), "the agent came to rest after %v", a.made())
				}
			})
		}
	})
	t.Logf("%d agents died, each after another write", deaths.Load())
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
		pair := issue.PairOf(&secret)
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
