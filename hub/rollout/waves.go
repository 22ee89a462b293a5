package rollout

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Waves has the metrics of the waves of rollouts. A nil Waves has none. Use NewWaves.
type Waves struct{ wave, waves *prometheus.GaugeVec }

// NewWaves registers metrics spokelet_rollout_wave and spokelet_rollout_waves; a nil registerer registers none.
func NewWaves(registerer prometheus.Registerer) (*Waves, error) {
	w := &Waves{
		wave: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "spokelet_rollout_wave", Help: "The first wave of an add-on that is not finished, from 1; 0 when all are.",
		}, []string{"addon"}),
		waves: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "spokelet_rollout_waves", Help: "Waves of the placement of an add-on that is furthest behind.",
		}, []string{"addon"}),
	}
	var err error
	for _, vector := range []**prometheus.GaugeVec{&w.wave, &w.waves} {
		if *vector, err = reconcile.RegisterMetric(registerer, *vector); err != nil {
			return nil, fmt.Errorf("registering the metrics of waves: %w", err)
		}
	}
	return w, nil
}

// set tells the waves of an add-on by those of its placement that has most of them ahead.
func (w *Waves) set(addOn string, placements []planner.Result) {
	if w == nil {
		return
	}
	var behind planner.Result
	for _, p := range placements {
		if ahead(p) > ahead(behind) || ahead(p) == ahead(behind) && p.Waves > behind.Waves {
			behind = p
		}
	}
	w.wave.WithLabelValues(addOn).Set(float64(behind.Wave))
	w.waves.WithLabelValues(addOn).Set(float64(behind.Waves))
}

// ahead returns how many waves of a placement are not finished.
func ahead(p planner.Result) int {
	if p.Wave == 0 {
		return 0
	}
	return p.Waves - p.Wave + 1
}

// forget forgets an add-on that is gone.
func (w *Waves) forget(addOn string) {
	if w != nil {
		w.wave.DeleteLabelValues(addOn)
		w.waves.DeleteLabelValues(addOn)
	}
}
