package addon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/csr"
)

// Agents of OCM before SecretOption.ClusterName stored certificate, key and kubeconfig of an add-on, and no cluster-name
// (open-cluster-management-io/registration, pkg/spoke/addon/registration_controller.go). The user names cluster and add-on.
func TestACredentialOfAnOlderAgentOfOCMIsAdopted(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{
		csr.KeyCertificate: certificateOf(t, csr.AddonUser("c1", "hello", "a")), csr.KeyKubeconfig: []byte("apiVersion: v1"),
	}}
	assert.True(t, isCredentialOf(secret, facts{name: "hello", cluster: "c1"}, registration{kubeconfig: true}))
}

func TestACredentialWithoutAClusterOfAnotherIsRefused(t *testing.T) {
	for sentence, user := range map[string]string{
		"another cluster": csr.AddonUser("c2", "hello", "a"), "another add-on": csr.AddonUser("c1", "other", "a"), "a custom user": "custom",
	} {
		t.Run(sentence, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{csr.KeyCertificate: certificateOf(t, user)}}
			reg := registration{kubeconfig: true}
			reg.request.User = "custom"
			assert.False(t, isCredentialOf(secret, facts{name: "hello", cluster: "c1"}, reg))
		})
	}
}
