package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

var (
	noon     = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	identity = csr.Identity{Cluster: "c1", Agent: "a1"}
	server   = issue.HubServer{Cluster: "hub", Server: "https://hub:6443", CAData: []byte("ca")}
)

// pairFor returns a certificate for the agent that is valid until an instant, with its key.
func pairFor(t *testing.T, id csr.Identity, until time.Time) issue.Pair {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	object, err := csr.ForCluster(id.Cluster, id.Agent).Build(key)
	require.NoError(t, err)
	request, err := csr.ParseRequest(object.Spec.Request)
	require.NoError(t, err)
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: request.Subject, NotBefore: noon.Add(-time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, authority)
	require.NoError(t, err)
	return issue.Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: key}
}

// dataOf is the content of a credential Secret as the Reconciler writes it.
func dataOf(t *testing.T, s issue.HubServer, id csr.Identity, pair issue.Pair) map[string][]byte {
	t.Helper()
	kubeconfig, err := s.Kubeconfig()
	require.NoError(t, err)
	return map[string][]byte{
		"cluster-name": []byte(id.Cluster), "agent-name": []byte(id.Agent), "kubeconfig": kubeconfig,
		"tls.crt": pair.Certificate, "tls.key": pair.Key,
	}
}

// factsOf returns what is known at noon of a credential Secret as the Reconciler writes it.
func factsOf(t *testing.T, s issue.HubServer, id csr.Identity, pair issue.Pair) Facts {
	t.Helper()
	return Facts{Server: s, Identity: id, Data: dataOf(t, s, id, pair), Pair: pair, Now: noon}
}
