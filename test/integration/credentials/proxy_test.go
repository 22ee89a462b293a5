package credentials_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// proxy is a real proxy that tunnels connections.
type proxy struct {
	url *url.URL
	// certificate holds what its clients trust; nil for one that speaks http.
	certificate []byte
	tunnels     atomic.Int64
}

// newProxy runs a proxy with the scheme http or https until the test ends.
func newProxy(t *testing.T, scheme string) *proxy {
	t.Helper()
	p := &proxy{}
	server := httptest.NewUnstartedServer(p)
	if scheme == "https" {
		certificate, key, err := selfSigned()
		require.NoError(t, err)
		pair, err := tls.X509KeyPair(certificate, key)
		require.NoError(t, err)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		server.StartTLS()
		p.certificate = certificate
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	var err error
	p.url, err = url.Parse(server.URL)
	require.NoError(t, err)
	return p
}

// ServeHTTP serves CONNECT.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	far, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, sent, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	p.tunnels.Add(1)
	_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
	var once sync.Once
	end := func() {
		_ = near.Close()
		_ = far.Close()
	}
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{near, far}, {far, sent}} { // sent holds what came right behind the request
		go func() {
			defer once.Do(end)
			_, _ = io.Copy(way.to, way.from)
		}()
	}
}

// through lets the agent and the credentials that it stores reach the hub through the proxy.
func (m *member) through(p *proxy, config *rest.Config) *rest.Config {
	m.t.Helper()
	m.server.ProxyURL = p.url.String()
	m.server.CAData = slices.Concat(m.server.CAData, p.certificate)
	block, _ := pem.Decode(m.server.CAData)
	_, err := x509.ParseCertificate(block.Bytes)
	require.NoError(m.t, err)
	config = rest.CopyConfig(config)
	config.CAData = m.server.CAData
	config.Proxy = http.ProxyURL(p.url)
	return config
}
