package agent

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/hubconn"
)

// clientConfig reads a kubeconfig, or the service account of the pod when there is no path.
func clientConfig(path string, wrap transport.WrapperFunc) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	wrapTransport(config, wrap)
	return config, nil
}

// wrapTransport puts wrap, unless nil, around the transport of a configuration.
func wrapTransport(config *rest.Config, wrap transport.WrapperFunc) {
	if wrap != nil {
		config.Wrap(wrap)
	}
}

// connectSpoke prepares the connection to the managed cluster, in hosted mode with the kubeconfig as it is now. A phase
// starts with a new kubeconfig if that can be used, else it goes on with the former one.
func (a *agent) connectSpoke(ctx context.Context) error {
	if !a.hosted() {
		return nil
	}
	raw, err := os.ReadFile(a.config.SpokeKubeconfig)
	if err == nil && a.spoke != nil && bytes.Equal(raw, a.spokeRaw) {
		return nil
	}
	var config *rest.Config
	if err == nil {
		config, err = bootstrap.RESTConfig(raw, a.config.SpokeKubeconfig)
	}
	if err == nil {
		config.UserAgent = userAgent
		wrapTransport(config, a.config.WrapTransport)
		limit(config, a.config.SpokeQPS, a.config.SpokeBurst)
		reachability := hubconn.NewSpokeReachability(a.clock, ctrl.LoggerFrom(ctx), config.Host)
		config.Wrap(reachability.Wrap)
		if err = a.useSpoke(config); err == nil {
			a.state.FollowSpoke(reachability)
		}
	}
	switch {
	case err == nil:
		a.spokeRaw = raw
	case a.spoke == nil:
		return fmt.Errorf("--spoke-kubeconfig %s: %w", a.config.SpokeKubeconfig, err)
	}
	return nil
}

// useSpoke sets the client configuration of the managed cluster, and the health check, which observes all requests that
// are sent with it.
func (a *agent) useSpoke(config *rest.Config) error {
	failures := &cluster.FailureDetector{}
	config.Wrap(failures.Wrap)
	var err error
	var httpClient *http.Client
	if httpClient, err = rest.HTTPClientFor(config); err != nil {
		return fmt.Errorf("building the client that probes the managed cluster: %w", err)
	}
	var address *url.URL
	if address, _, err = rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, true); err != nil {
		return fmt.Errorf("reading the address of the managed cluster: %w", err)
	}
	a.spoke, a.spokeHealth = config, &cluster.Health{Client: httpClient, Server: address, Failures: failures}
	if a.hosted() {
		// Nothing but watches may go to the cluster, which live on without its storage: the Leases are elsewhere.
		a.spokeHealth.Every = a.config.Period
	}
	return nil
}

// limit sets the client-side rate limit; without a rate there is none, and the API server's priority and fairness
// decides.
func limit(config *rest.Config, qps float32, burst int) {
	config.QPS, config.Burst = qps, burst
	if qps == 0 {
		config.QPS = -1
	}
}
