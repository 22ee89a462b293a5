package attacks_test

import (
	"crypto/elliptic"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// A hub that comes from OCM: the CA of an add-on, in a namespace of its own, has no annotations. Another author names its
// Secret, for a signer and a subject of their choice.
//
// It is the last test of the package: a hub manager that requires the policies does not start after one that did not.
func TestTheCAOfAnotherAddOnIsNotServedWhereSecretsAreTrustedAsInOCM(t *testing.T) {
	shared.manager.Stop()
	t.Cleanup(shared.manager.Start)
	manager := suite.StartHub(t, shared.plane, func(c *hub.Config) {
		c.TrustAsOCM, c.AutoApprovedCSRUsers, c.RequirePolicies = true, []string{trustedUser}, false
	})
	t.Cleanup(manager.Stop)
	key, err := ecdsaKey(elliptic.P256())()
	require.NoError(t, err)
	require.NoError(t, shared.createCA(t.Context(), "contested", key))
	deleteAfterwards(t, &corev1.Secret{ObjectMeta: in("signing", "contested")})
	signerOf := func(signer string) string {
		registration := customSigner(signer, "user: admin-of-the-other-add-on")
		return strings.ReplaceAll(registration, "name: rsa", "name: contested")
	}
	require.True(t, demanded(t, "ca-owner", "", demand{registration: signerOf("example.com/owner")}))
	require.True(t, demanded(t, "ca-thief", "", demand{registration: signerOf("example.com/thief")}))

	asks := forAddon("cluster1", "hello", kube)
	asks.Labels = map[string]string{names.LabelClusterName: "cluster1", names.LabelAddonName: "ca-thief"}
	asks.DNSNames = []string{"ca-thief.addon.open-cluster-management.io"}
	asks.Signer, asks.User, asks.Groups = "example.com/thief", "admin-of-the-other-add-on", nil
	sent := post(t, forgery{as: agent1, asks: asks, rules: rules("SigningCANotServing")})
	suite.Eventually(t, func() error { return toldRules(t.Context(), sent, rules("SigningCANotServing")) })
	var request certificatesv1.CertificateSigningRequest
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(sent.request), &request))
	assert.Empty(t, request.Status.Certificate, "the hub manager signs with the CA of another add-on")
}
