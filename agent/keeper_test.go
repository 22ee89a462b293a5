package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// pairFor returns a self-signed client certificate with its key.
func pairFor(t *testing.T, name string) issue.Pair {
	t.Helper()
	return pairUntil(t, name, time.Now().Add(time.Hour))
}

// pairUntil is pairFor with the end of its validity.
func pairUntil(t *testing.T, name string, until time.Time) issue.Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
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

func testAgent() *agent {
	return &agent{clock: clock.RealClock{}, hubClock: hubconn.NewClock(clock.RealClock{})}
}

func TestTheKeeperEndsThePhaseWithItsGround(t *testing.T) {
	hub := issue.HubServer{Cluster: "hub", Server: "https://hub.example.com"}
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
		"an unusable certificate does": {join.Credential{Server: hub, Pair: issue.Pair{Key: []byte("x")}}, "cannot be used"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			connection, err := hubconn.Connect(first.Server, first.Pair, hubconn.Observers{})
			require.NoError(t, err)
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			testAgent().newKeeper(connection, first, end).offer(tc.offered)
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

// Shows: registration/credential-expired
func TestTheKeeperEndsThePhaseWhenTheLastCertificateExpires(t *testing.T) {
	hub := issue.HubServer{Cluster: "hub", Server: "https://hub.example.com"}
	first := join.Credential{Server: hub, Pair: pairFor(t, "a")}
	second := join.Credential{Server: hub, Pair: pairFor(t, "b")}
	connection, err := hubconn.Connect(first.Server, first.Pair, hubconn.Observers{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		first.NotAfter, second.NotAfter = time.Now().Add(time.Hour), time.Now().Add(3*time.Hour)
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		k := testAgent().newKeeper(connection, first, end)
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
