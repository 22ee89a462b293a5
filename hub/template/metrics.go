package template

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Renders counts renderings of templates.
type Renders struct{ rendered, failed prometheus.Counter }

// NewRenders registers metric spokelet_template_renders_total; a nil registerer registers none.
func NewRenders(registerer prometheus.Registerer) (*Renders, error) {
	vector, err := reconcile.RegisterMetric(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spokelet_template_renders_total",
		Help: "Renderings of a template for an add-on on a cluster, by their result.",
	}, []string{"result"}))
	if err != nil {
		return nil, fmt.Errorf("registering the metric of renderings: %w", err)
	}
	return &Renders{rendered: vector.WithLabelValues("rendered"), failed: vector.WithLabelValues("failed")}, nil
}

// count counts a rendering.
func (r *Renders) count(err error) {
	switch {
	case r == nil:
	case err != nil:
		r.failed.Inc()
	default:
		r.rendered.Inc()
	}
}
