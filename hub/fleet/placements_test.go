package fleet

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// filling is a cache that is filled after a minute.
type filling struct{ client.Reader }

func (filling) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		return errors.New("no Placement here")
	}
}

// TestNobodyWaitsForACacheLongerThanTheirContext: the hub manager is told to end while the first one who asks waits for
// the cache.
func TestNobodyWaitsForACacheLongerThanTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Placements{Client: filling{}, Clock: clocktesting.NewFakePassiveClock(time.Now())}
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, errors.New("told to end"))
		defer stop()
		began := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := p.Decisions(ctx, types.NamespacedName{Namespace: "a", Name: "p"})
				assert.ErrorContains(t, err, "told to end")
			})
		}
		all.Wait()
		assert.Equal(t, time.Second, time.Since(began))
		_, err := p.Decisions(t.Context(), types.NamespacedName{Namespace: "a", Name: "p"})
		require.ErrorContains(t, err, "no Placement here", "their turn is given back")
	})
}

func TestAPlacementThatIsGoneIsForgottenWhenNobodyAsksForItAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.Install(scheme))
	s := decided([]string{"a"})
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.placement).Build()
	p := &Placements{Client: hub, Clock: clocktesting.NewFakePassiveClock(noon())}
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	_, err := p.Decisions(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, p.Forget(t.Context(), key))
	assert.Contains(t, p.known, key, "it is there")
	require.NoError(t, hub.Delete(t.Context(), s.placement))
	require.NoError(t, p.Forget(t.Context(), key))
	assert.Empty(t, p.known)
}
