package work

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// copyGauges tells, when it is asked, how the copies of works are. It is known to the registerer for as long as the
// phase of the agent lasts.
type copyGauges struct {
	*Reconciler
	copies, bytes, failures, offline *prometheus.Desc
}

func newCopyGauges(r *Reconciler) *copyGauges {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &copyGauges{
		Reconciler: r,
		copies:     desc("spokelet_work_copies", "Works of which there is a copy on disk."),
		bytes:      desc("spokelet_work_copy_bytes", "What the copies of works take on disk."),
		failures: desc("spokelet_work_copy_failures_total", "Copies of works that could not be written or removed since "+
			"the agent began its phase."),
		offline: desc("spokelet_work_offline", "1 while works are looked after by their copies, because the hub has not "+
			"listed them since the start."),
	}
}

// Start keeps the gauges registered until the context ends.
func (g *copyGauges) Start(ctx context.Context) error { return keepRegistered(ctx, g.Metrics, g) }

// Describe lists the gauges.
func (g *copyGauges) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{g.copies, g.bytes, g.failures, g.offline} {
		to <- desc
	}
}

// Collect tells their values.
func (g *copyGauges) Collect(to chan<- prometheus.Metric) {
	copies := len(g.Cache.works())
	g.Cache.mu.Lock()
	bytes, failures := g.Cache.bytes, g.Cache.failures
	g.Cache.mu.Unlock()
	offline := 0.0
	if g.Reconciler.offline() {
		offline = 1
	}
	to <- prometheus.MustNewConstMetric(g.copies, prometheus.GaugeValue, float64(copies))
	to <- prometheus.MustNewConstMetric(g.bytes, prometheus.GaugeValue, float64(bytes))
	to <- prometheus.MustNewConstMetric(g.failures, prometheus.CounterValue, float64(failures))
	to <- prometheus.MustNewConstMetric(g.offline, prometheus.GaugeValue, offline)
}
