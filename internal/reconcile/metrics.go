package reconcile

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterMetric registers a collector and returns the one to use: the collector itself, or an equal one that was
// registered before, as by an earlier run in the same process. A nil registerer registers nothing.
func RegisterMetric[C prometheus.Collector](registerer prometheus.Registerer, collector C) (C, error) {
	if registerer == nil {
		return collector, nil
	}
	err := registerer.Register(collector)
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering a metric: %w", err)
	}
	return collector, nil
}
