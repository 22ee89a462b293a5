package credentials_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Shows: security/foreign-secrets-stay
func TestAnAddonCannotOverwriteOrDeleteASecretThatIsNotItsCredential(t *testing.T) {
	t.Parallel()
	for name, namespace := range map[string]func(m *member) string{
		"in the namespace of the agent":  func(m *member) string { return m.namespace },
		"in the namespace of the add-on": func(m *member) string { return m.addonNamespace },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, "addon-foreign")
			m.createNamespace(m.addonNamespace)
			foreign := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace(m), Name: helloKube},
				Data:       map[string][]byte{"kubeconfig": []byte("precious")},
			}
			require.NoError(t, m.spoke.Client.Create(t.Context(), foreign))
			m.serve(m.accepted())
			m.enable(addonv1beta1.HealthCheckModeCustomized, foreign.Namespace, kubeClient("user"))
			told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
			assert.Contains(t, told.Message, "secret "+foreign.Namespace+"/hello-hub-kubeconfig exists and is not a credential "+
				"of the add-on: delete it, or give the add-on another namespace")
			assert.Empty(t, m.requests(hello), "a certificate that cannot be stored is not asked for")
			assert.Equal(t, foreign.Data, m.secret(foreign.Namespace, helloKube).Data)

			// Once it is gone, the add-on is served without a restart.
			require.NoError(t, m.spoke.Client.Delete(t.Context(), foreign))
			m.approve(m.awaitRequests(hello, 1)[0])
			m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
		})
	}
}
