package join_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxy is a real proxy for TLS connections: it connects and passes bytes on.
type proxy struct {
	url string
	// ca is the authority of its own certificate, where it has one.
	ca []byte
	// connects counts connections to the first hub, foreign those to elsewhere.
	connects, foreign atomic.Int64
}

// startProxy starts a proxy that is spoken to over http or over https.
func startProxy(t *testing.T, secure bool) *proxy {
	t.Helper()
	p := &proxy{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	if secure {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		server.StartTLS()
		p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	} else {
		server.Start()
	}
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	hub, err := url.Parse(first.Host)
	if r.Method != http.MethodConnect || err != nil {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	if r.Host != hub.Host {
		p.foreign.Add(1)
		http.Error(w, "only to the hub", http.StatusForbidden)
		return
	}
	p.connects.Add(1)
	far, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = far.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	near, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = near.Close() }()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

func TestTheProxyOfTheTestsPassesNothingElse(t *testing.T) {
	p := startProxy(t, false)
	through, err := url.Parse(p.url)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1/", nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	require.Error(t, err)
	assert.Equal(t, int64(1), p.foreign.Load())
}
