package rollout

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/rollout/planner"
)

func TestTheWavesOfAnAddOnAreMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w, err := NewWaves(registry)
	require.NoError(t, err)
	w.set("logs", []planner.Result{{Waves: 5, Wave: 5}, {Waves: 4, Wave: 2}, {Waves: 3}})
	w.set("metrics", []planner.Result{{Waves: 2}, {Waves: 3}})
	w.set("gone", []planner.Result{{Waves: 1, Wave: 1}})
	w.forget("gone")
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP spokelet_rollout_wave The first wave of an add-on that is not finished, from 1; 0 when all are.
# TYPE spokelet_rollout_wave gauge
spokelet_rollout_wave{addon="logs"} 2
spokelet_rollout_wave{addon="metrics"} 0
# HELP spokelet_rollout_waves Waves of the placement of an add-on that is furthest behind.
# TYPE spokelet_rollout_waves gauge
spokelet_rollout_waves{addon="logs"} 4
spokelet_rollout_waves{addon="metrics"} 3
`)))
	again, err := NewWaves(registry)
	require.NoError(t, err)
	assert.Same(t, w.wave, again.wave, "a later run goes on")
	var none *Waves
	none.set("logs", nil)
	none.forget("logs")
}
