package agent

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

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

// hubConnection is the way to the hub for one serving phase. All clients of the hub share its transport, so all of them
// use a new certificate as soon as there is one.
type hubConnection struct {
	certificate atomic.Pointer[tls.Certificate]
	// answers watches what the hub says to the certificate.
	answers *answers
	// reach watches whether it answers; nil watches nothing.
	reach     *reach
	dialer    *connrotation.Dialer
	transport http.RoundTripper
	server    string
}

// connectHub prepares connections to the hub with a credential; it sends nothing.
func connectHub(credential join.Credential, watch *answers) (*hubConnection, error) {
	h := &hubConnection{
		answers: watch,
		dialer:  connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext),
		server:  credential.Server.Server,
	}
	if err := h.use(credential.Pair); err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if credential.Server.ProxyURL != "" {
		fixed, err := url.Parse(credential.Server.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("reading the proxy-url of the hub kubeconfig: %w", err)
		}
		proxy = http.ProxyURL(fixed)
	}
	var err error
	h.transport, err = transport.New(&transport.Config{
		TLS: transport.TLSConfig{
			CAData: credential.Server.CAData, CAFile: credential.Server.CAFile,
			GetCertHolder: &transport.GetCertHolder{GetCert: func() (*tls.Certificate, error) {
				return h.certificate.Load(), nil
			}},
		},
		DialHolder: &transport.DialHolder{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return h.dialer.DialContext(ctx, network, address)
		}},
		Proxy: proxy,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to hub %s: %w", h.server, err)
	}
	return h, nil
}

// use makes all connections from now on with another certificate. Those that exist are not touched.
func (h *hubConnection) use(pair csr.Pair) error {
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return fmt.Errorf("reading the certificate for the hub: %w", err)
	}
	h.certificate.Store(&certificate)
	return nil
}

// rotate puts another certificate to use at once: the connections that exist are cut, and watches come back by
// themselves.
func (h *hubConnection) rotate(pair csr.Pair) error {
	if err := h.use(pair); err != nil {
		return err
	}
	h.dialer.CloseAll()
	h.answers.reset()
	return nil
}

// close cuts all connections.
func (h *hubConnection) close() { h.dialer.CloseAll() }

// config returns a client configuration over this connection, with wrap, unless nil, around its transport.
func (h *hubConnection) config(qps float32, burst int, wrap transport.WrapperFunc) *rest.Config {
	config := &rest.Config{Host: h.server, Transport: h.transport, UserAgent: userAgent}
	wrapTransport(config, wrap)
	config.Wrap(h.answers.wrap)
	if h.reach != nil {
		config.Wrap(h.reach.wrap)
	}
	if h.answers.time != nil {
		config.Wrap(h.answers.time.wrap)
	}
	limit(config, qps, burst)
	return config
}

// limit sets the client-side limits; without a rate there is none, and the server's priority and fairness decides.
func limit(config *rest.Config, qps float32, burst int) {
	config.QPS, config.Burst = qps, burst
	if qps == 0 {
		config.QPS = -1
	}
}
