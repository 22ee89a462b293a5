package agent

import (
	"context"
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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

// pairFor returns a self-signed client certificate with its key.
func pairFor(t *testing.T, name string) csr.Pair {
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
	return csr.Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// hubThatKnowsYou answers each request with the name in the certificate of the client.
func hubThatKnowsYou(t *testing.T) (*httptest.Server, csr.HubServer) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName+" over "+r.Proto)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, csr.HubServer{Cluster: "hub", Server: server.URL, CAData: ca}
}

func TestANewCertificateIsUsedWithoutARestart(t *testing.T) {
	server, hub := hubThatKnowsYou(t)
	connection, err := connectHub(join.Credential{Server: hub, Pair: pairFor(t, "old")}, &answers{clock: clock.RealClock{}})
	require.NoError(t, err)
	defer connection.close()
	client, err := rest.HTTPClientFor(connection.config(0, 0, nil))
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
	require.NoError(t, connection.rotate(pairFor(t, "new")))
	require.Eventually(t, func() bool { return ask() == "new over HTTP/2.0" }, 5*time.Second, 10*time.Millisecond)

	require.Error(t, connection.rotate(csr.Pair{Certificate: []byte("garbage")}))
	assert.Equal(t, "new over HTTP/2.0", ask(), "what cannot be used does not replace what can")
}

func TestTheKeeperEndsThePhaseWithItsGround(t *testing.T) {
	_, hub := hubThatKnowsYou(t)
	elsewhere := hub
	elsewhere.Server = "https://elsewhere.example.com"
	first := join.Credential{Server: hub, Pair: pairFor(t, "a"), NotAfter: time.Now().Add(time.Hour)}
	tests := map[string]struct {
		offered join.Credential
		want    string
	}{
		"the same credential goes on":  {first, ""},
		"a new certificate goes on":    {join.Credential{Server: hub, Pair: pairFor(t, "b"), NotAfter: first.NotAfter}, ""},
		"another hub ends it":          {join.Credential{Server: elsewhere, Pair: first.Pair}, "elsewhere"},
		"another identity ends it":     {join.Credential{Server: hub, Pair: first.Pair, Identity: csr.Identity{Cluster: "x"}}, "elsewhere"},
		"an unusable certificate does": {join.Credential{Server: hub, Pair: csr.Pair{Key: []byte("x")}}, "cannot be used"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			connection, err := connectHub(first, &answers{clock: clock.RealClock{}})
			require.NoError(t, err)
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			(&agent{clock: clock.RealClock{}, hubTime: &hubTime{clock: clock.RealClock{}}}).newKeeper(connection, first, end).offer(tc.offered)
			if tc.want == "" {
				require.NoError(t, ctx.Err())
				return
			}
			var over phaseOverError
			require.ErrorAs(t, context.Cause(ctx), &over)
			assert.Contains(t, over.Error(), tc.want)
		})
	}
}

// Row: spoke/health_checker_test.go:14
func TestTheKeeperEndsThePhaseWhenTheLastCertificateExpires(t *testing.T) {
	_, hub := hubThatKnowsYou(t)
	first := join.Credential{Server: hub, Pair: pairFor(t, "a")}
	second := join.Credential{Server: hub, Pair: pairFor(t, "b")}
	connection, err := connectHub(first, &answers{clock: clock.RealClock{}})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		first.NotAfter, second.NotAfter = time.Now().Add(time.Hour), time.Now().Add(3*time.Hour)
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		k := (&agent{clock: clock.RealClock{}, hubTime: &hubTime{clock: clock.RealClock{}}}).newKeeper(connection, first, end)
		ended := make(chan error, 1)
		go func() { ended <- k.Start(ctx) }()
		synctest.Wait()
		k.offer(second)
		time.Sleep(2 * time.Hour) // of the fake clock
		synctest.Wait()
		require.NoError(t, ctx.Err(), "the second certificate counts")
		time.Sleep(time.Hour)
		require.NoError(t, <-ended)
		var over phaseOverError
		require.ErrorAs(t, context.Cause(ctx), &over)
	})
}
