package command

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/version"
)

// Component is a program in label component of metric spokelet_build_info.
type Component string

// The programs with this metric.
const (
	Agent      Component = "agent"
	HubManager Component = "hub-manager"
)

// Tell logs which version runs, and registers metric spokelet_build_info, whose labels say it.
func (c Component) Tell(ctx context.Context, registerer prometheus.Registerer) error {
	ctrl.LoggerFrom(ctx).Info("starting", "component", string(c), "version", version.String())
	gauge, err := reconcile.RegisterMetric(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spokelet_build_info",
		Help: "1 for the program that runs. The labels are its component and its version.",
	}, []string{"component", "version"}))
	if err != nil {
		return fmt.Errorf("registering the metric of the version: %w", err)
	}
	gauge.WithLabelValues(string(c), version.String()).Set(1)
	return nil
}
