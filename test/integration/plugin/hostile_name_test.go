package plugin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// With all policies in force, the name of a certificate request is a text of the user who asks, and the plugin tells a
// person on call to run a command with it.
func TestTheNameOfARequestRunsNothingInTheShellOfAPersonOnCall(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:open-cluster-management:" + far + ":a"},
	}, key)
	require.NoError(t, err)
	for who, as := range map[string]client.Client{
		"a bootstrap credential": world.hub.Account(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap),
		"the agent of the cluster": world.hub.As(t, "system:open-cluster-management:"+far+":a",
			"system:open-cluster-management:"+far, "system:open-cluster-management:managed-clusters"),
	} {
		t.Run(who, func(t *testing.T) {
			request := &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{
					Name: "x;touch owned|sh " + strings.ReplaceAll(who, " ", "-"), Labels: map[string]string{names.LabelClusterName: far},
				},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
					SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
				},
			}
			require.NoError(t, as.Create(t.Context(), request), "if the API server refuses it, the plugin need not ask")
			defer func() { require.NoError(t, world.hub.Client.Delete(t.Context(), request)) }()
			got := run(t, "--kubeconfig", world.viewer, "why", "csr", request.Name)
			for line := range strings.Lines(got.out) {
				if strings.HasPrefix(line, "next: ") && strings.Contains(line, request.Name) {
					assert.Contains(t, line, "'"+request.Name+"'", got.out)
				}
			}
		})
	}
}
