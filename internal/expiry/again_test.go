package expiry_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/internal/expiry"
)

// A second run in the same process tells what it holds, as RegisterMetric promises.
func TestALaterRunInTheSameProcessTellsItsEnds(t *testing.T) {
	registry, now := prometheus.NewPedanticRegistry(), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	_, err := expiry.New(registry, now)
	require.NoError(t, err)
	again, err := expiry.New(registry, now)
	require.NoError(t, err)
	again.Set(expiry.Agent, "", life(30))
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Len(t, families, 2)
}
