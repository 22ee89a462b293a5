package health

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Count registers metrics of the connections to the hub and to a managed cluster elsewhere; nil registers none.
func (s *State) Count(registerer prometheus.Registerer) error {
	metric := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"to"}, nil)
	}
	c := connections{
		state: s,
		connected: metric("spokelet_agent_connected", "1 while the other side responds, and 0 in an outage; absent while "+
			"there is no connection."),
		since: metric("spokelet_agent_outage_start_timestamp_seconds", "When the outage began; absent outside an outage."),
	}
	if _, err := reconcile.RegisterMetric(registerer, prometheus.Collector(c)); err != nil {
		return fmt.Errorf("registering the metrics of connections: %w", err)
	}
	return nil
}

// connections are the metrics of the connections of a state.
type connections struct {
	state            *State
	connected, since *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c connections) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.connected
	ch <- c.since
}

// Collect implements prometheus.Collector.
func (c connections) Collect(ch chan<- prometheus.Metric) {
	c.state.mu.Lock()
	hub, spoke := c.state.hub, c.state.spoke
	c.state.mu.Unlock()
	for to, cluster := range map[string]Cluster{"hub": hub, "managed-cluster": spoke} {
		if cluster == nil {
			continue
		}
		connected, since := 1.0, cluster.Since()
		if !since.IsZero() {
			connected = 0
			ch <- prometheus.MustNewConstMetric(c.since, prometheus.GaugeValue, float64(since.Unix()), to)
		}
		ch <- prometheus.MustNewConstMetric(c.connected, prometheus.GaugeValue, connected, to)
	}
}
