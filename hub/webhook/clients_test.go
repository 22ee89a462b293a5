package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"

	"github.com/spokelet/spokelet/hub/webhook"
)

// clientOf returns a client certificate, and the pool of its authority, which is itself.
func clientOf(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api-server"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool
}

// Shows: security/unknown-clients
func TestAClientWithoutACertificateCannotCallTheWebhook(t *testing.T) {
	encoded, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(encoded, key)
	require.NoError(t, err)
	known, authorities := clientOf(t)
	stranger, _ := clientOf(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, ok := listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	require.NoError(t, listener.Close())
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: address.Port, ClientCAs: authorities,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
	}, logr.Discard())
	server.Register("/check", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(encoded))
	post := func(path, body string, certificates ...tls.Certificate) (int, string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+listener.Addr().String()+path,
			strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = answer.Body.Close() }()
		said, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(bytes.TrimSpace(said)), err
	}
	require.Eventually(t, func() bool { return server.StartedChecker()(nil) == nil }, 10*time.Second, 5*time.Millisecond)
	for path, body := range map[string]string{webhook.Path: posted(t, addOnAlpha), "/check": `{"a":1}`} {
		code, said, err := post(path, body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusForbidden, code)
		assert.Equal(t, "a client certificate is required", said)
		_, _, err = post(path, body, stranger)
		require.Error(t, err, "a certificate of another authority")
		code, said, err = post(path, body, known)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, code, said)
	}
	t.Run("and a check of admission has the same bounds", func(t *testing.T) {
		code, said, err := post("/check", `{"a":[`+strings.TrimSuffix(strings.Repeat("{},", 300000), ",")+`]}`, known)
		require.NoError(t, err)
		assert.Equal(t, http.StatusRequestEntityTooLarge, code)
		assert.Contains(t, said, "consists of more than")
		code, _, err = post("/check", strings.Repeat("x", 8<<20), known)
		if err == nil {
			assert.Equal(t, http.StatusRequestEntityTooLarge, code)
		}
	})
}
