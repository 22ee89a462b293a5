package hubprocess

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// Connection is how a program reaches the API server of its hub.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig of the hub; empty means the pod's own service account.
	Kubeconfig string
	// UserAgent is the user agent of requests, and the field manager of writes.
	UserAgent string
	// QPS and Burst limit requests; QPS zero leaves that to API Priority and Fairness.
	QPS   float32
	Burst int
	// Wrap, unless nil, is put around every transport.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Config returns the client configuration.
func (c Connection) Config() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the hub: %w", err)
	}
	cfg.UserAgent = c.UserAgent
	cfg.QPS, cfg.Burst = c.QPS, c.Burst
	if c.QPS == 0 {
		cfg.QPS = -1
	}
	cfg.Wrap(roundtrip.Chain(roundtrip.Bound(roundtrip.Silence), c.Wrap))
	return cfg, nil
}

// newVersions detects that the hub no longer serves the API version of add-ons that this process uses. All reconcilers
// are built for one version, so the process exits, and restarts with the other. program is the process in messages,
// such as "the hub manager".
func newVersions(
	ctx context.Context, cfg *rest.Config, wire addonapi.Wire, program string,
) *addonapi.Versions {
	v := addonapi.NewVersions()
	v.Wire = wire
	v.Detect = func() (addonapi.Wire, error) { return addonapi.DetectAt(cfg, nil) }
	v.Changed = func(now addonapi.Wire) error {
		return fmt.Errorf("the hub serves add-ons in %s and no longer in %s: %s has to be started again, "+
			"and then uses %s", now, wire, program, now)
	}
	v.Missing = func(why error) {
		if why == nil {
			ctrl.LoggerFrom(ctx).Info("the hub serves add-ons again", "version", wire)
			return
		}
		ctrl.LoggerFrom(ctx).Error(why, "the add-ons of the hub cannot be seen, looking again")
	}
	return v
}
