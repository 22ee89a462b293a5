package offline

import "github.com/prometheus/client_golang/prometheus"

// collector has the metrics of a store.
type collector struct {
	store                            *Store
	isOffline                        func() bool
	copies, bytes, failures, offline *prometheus.Desc
}

// NewCollector returns the metrics of a store. isOffline reports whether the agent follows the copies.
func NewCollector(store *Store, isOffline func() bool) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &collector{
		store: store, isOffline: isOffline,
		copies: desc("spokelet_work_copies", "Works of which there is a copy on disk."),
		bytes:  desc("spokelet_work_copy_bytes", "What the copies of works take on disk."),
		failures: desc("spokelet_work_copy_failures_total", "Copies of works that could not be written or removed since "+
			"the agent began its phase."),
		offline: desc("spokelet_work_offline", "1 while works are looked after by their copies, because the hub has not "+
			"listed them since the start."),
	}
}

// Describe sends the descriptions of the metrics.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.copies, c.bytes, c.failures, c.offline} {
		to <- desc
	}
}

// Collect sends the values of the metrics.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	copies := len(c.store.Works())
	c.store.mu.Lock()
	bytes, failures := c.store.bytes, c.store.failures
	c.store.mu.Unlock()
	offline := 0.0
	if c.isOffline() {
		offline = 1
	}
	to <- prometheus.MustNewConstMetric(c.copies, prometheus.GaugeValue, float64(copies))
	to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(bytes))
	to <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(failures))
	to <- prometheus.MustNewConstMetric(c.offline, prometheus.GaugeValue, offline)
}
