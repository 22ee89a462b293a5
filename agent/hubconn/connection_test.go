package hubconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/csr/issue"
)

// pairFor returns a self-signed client certificate with its key.
func pairFor(t *testing.T, name string) issue.Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return issue.Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// startHub starts a hub that answers each request with the name in the certificate of the client.
func startHub(t *testing.T) (*httptest.Server, issue.HubServer) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName+" over "+r.Proto)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, issue.HubServer{Cluster: "hub", Server: server.URL, CAData: ca}
}

func TestANewCertificateIsUsedWithoutARestart(t *testing.T) {
	server, hub := startHub(t)
	connection, err := Connect(hub, pairFor(t, "old"), Observers{Responses: &Responses{Clock: clock.RealClock{}}})
	require.NoError(t, err)
	defer connection.Close()
	client, err := rest.HTTPClientFor(connection.RESTConfig(nil))
	require.NoError(t, err)
	ask := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		if err != nil {
			return err.Error() // a request may meet the connection that is being cut
		}
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return string(body)
	}
	assert.Equal(t, "old over HTTP/2.0", ask())
	require.NoError(t, connection.Rotate(pairFor(t, "new")))
	require.Eventually(t, func() bool { return ask() == "new over HTTP/2.0" }, 5*time.Second, 10*time.Millisecond)

	require.Error(t, connection.Rotate(issue.Pair{Certificate: []byte("garbage")}))
	assert.Equal(t, "new over HTTP/2.0", ask(), "what cannot be used does not replace what can")
}
