package approval_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
)

func TestAnAddonThatRegistersByTokenGetsNoCertificate(t *testing.T) {
	t.Parallel()
	createCluster(t, "tokens")
	create(t, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "tokens", Name: tokenAddon}})
	asked, err := csr.ForAddon("tokens", tokenAddon, addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient})
	require.NoError(t, err)
	request := ask(t, agentOf(t, "tokens"), asked)
	event := awaitEvent(t, request, "SignerNotExpected")
	assert.Contains(t, event.Message, "the add-on registers no certificate on this cluster")
	assertOpen(t, request)
}
