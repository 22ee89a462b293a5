package hubconn

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/pause"
)

// The pauses between two attempts of a Probe.
const firstPause, lastPause = time.Second, time.Minute

// attemptTimeout bounds one attempt.
const attemptTimeout = 10 * time.Second

// Probe asks the hub with a growing pause whether it accepts the credential of a connection. It is a Runnable of a
// phase's manager, and closes the connection when it ends.
type Probe struct {
	connection *Connection
	client     *http.Client
	// url is the ManagedCluster of the credential on the hub.
	url   string
	clock clock.Clock
	// accepted is called once, when the hub accepted the credential; it must not block.
	accepted func()
}

// NewProbe returns a Probe that reads the ManagedCluster with the name cluster. wrap, unless nil, is put around the
// transport. accepted is called once, and must not block.
func (c *Connection) NewProbe(
	cluster string, wrap transport.WrapperFunc, now clock.Clock, accepted func(),
) (*Probe, error) {
	client, err := rest.HTTPClientFor(c.RESTConfig(wrap))
	if err != nil {
		return nil, fmt.Errorf("building the client that probes the stored credential: %w", err)
	}
	address, err := url.JoinPath(c.server, "apis", clusterv1.GroupName, clusterv1.GroupVersion.Version, "managedclusters",
		cluster)
	if err != nil {
		return nil, fmt.Errorf("building the URL that probes the stored credential: %w", err)
	}
	return &Probe{connection: c, client: client, url: address, clock: now, accepted: accepted}, nil
}

// Start implements manager.Runnable.
func (p *Probe) Start(ctx context.Context) error {
	defer p.connection.Close()
	attempts := pause.Growing{First: firstPause, Last: lastPause}
	for wait := firstPause; ; wait = attempts.Next(wait) {
		timer := p.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		status, err := get(ctx, p.client, p.url)
		if err == nil && authenticated(status) {
			p.accepted()
			return nil
		}
		log.FromContext(ctx).V(1).Info("the hub does not accept the stored certificate", "status", status, "error", err)
	}
}

// get sends one request and returns the status of the response.
func get(ctx context.Context, client *http.Client, address string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// authenticated reports whether a status proves that the hub knows the user, whatever it allows.
func authenticated(status int) bool {
	return status == http.StatusOK || status == http.StatusForbidden || status == http.StatusNotFound
}
