package hubconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
)

// Connection connects one serving phase to the hub. All clients of the hub share its transport, so all of them use a
// new certificate as soon as there is one.
type Connection struct {
	certificate atomic.Pointer[tls.Certificate]
	observers   Observers
	dialer      *connrotation.Dialer
	transport   http.RoundTripper
	server      string
}

// Observers see the responses of the hub on one connection; nil fields observe nothing.
type Observers struct {
	// Responses detects that the hub rejects the certificate.
	Responses *Responses
	// Reachability detects that the hub does not respond.
	Reachability *Reachability
	// Clock learns the time at the hub.
	Clock *Clock
}

// Connect prepares connections to a hub with a client certificate. It sends nothing.
func Connect(server issue.HubServer, pair issue.Pair, observers Observers) (*Connection, error) {
	c := &Connection{
		observers: observers,
		dialer:    connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext),
		server:    server.Server,
	}
	if err := c.use(pair); err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if server.ProxyURL != "" {
		fixed, err := url.Parse(server.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("reading the proxy-url of the hub kubeconfig: %w", err)
		}
		proxy = http.ProxyURL(fixed)
	}
	var err error
	c.transport, err = transport.New(&transport.Config{
		TLS: transport.TLSConfig{
			CAData: server.CAData, CAFile: server.CAFile,
			GetCertHolder: &transport.GetCertHolder{GetCert: func() (*tls.Certificate, error) {
				return c.certificate.Load(), nil
			}},
		},
		DialHolder: &transport.DialHolder{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.dialer.DialContext(ctx, network, address)
		}},
		Proxy: proxy,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to hub %s: %w", c.server, err)
	}
	return c, nil
}

// use sets the certificate of all connections that are made from now on.
func (c *Connection) use(pair issue.Pair) error {
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return fmt.Errorf("reading the certificate for the hub: %w", err)
	}
	c.certificate.Store(&certificate)
	return nil
}

// Rotate replaces the certificate at once: it closes the connections that exist, and watches reconnect by themselves.
// If the certificate cannot be used, it changes nothing.
func (c *Connection) Rotate(pair issue.Pair) error {
	if err := c.use(pair); err != nil {
		return err
	}
	c.dialer.CloseAll()
	if c.observers.Responses != nil {
		c.observers.Responses.reset()
	}
	return nil
}

// Close closes all connections.
func (c *Connection) Close() { c.dialer.CloseAll() }

// RESTConfig returns a client configuration over this connection, without client-side rate limit. wrap, unless nil, is
// put around the transport; the observers see the responses that it returns.
func (c *Connection) RESTConfig(wrap transport.WrapperFunc) *rest.Config {
	config := &rest.Config{Host: c.server, Transport: c.transport, UserAgent: names.FieldManagerWork, QPS: -1}
	if wrap != nil {
		config.Wrap(wrap)
	}
	if o := c.observers.Responses; o != nil {
		config.Wrap(o.Wrap)
	}
	if o := c.observers.Reachability; o != nil {
		config.Wrap(o.Wrap)
	}
	if o := c.observers.Clock; o != nil {
		config.Wrap(o.Wrap)
	}
	return config
}
