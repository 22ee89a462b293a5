package credentials_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/addonapi"
)

// Shows: registration/short-lived-certificate
func TestACertificateOfHalfAMinuteIsReplacedInTime(t *testing.T) {
	t.Parallel()
	site := second
	eachWireAtOnce(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newMemberOn(t, "addon-short", site, site, site)
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		m.approve(m.awaitRequests(hello, 1)[0])
		first := m.awaitSecret(m.addonNamespace, helloKube)
		m.eventually(func() bool { return len(m.requests(hello)) == 2 }, "the second request")
		assert.Equal(t, "user", m.who(first).Username, "the first one is good when the second is asked for")
		m.approveAll(m.requests(hello))
		m.eventually(func() bool {
			return string(m.secret(m.addonNamespace, helloKube).Data["tls.crt"]) != string(first.Data["tls.crt"])
		}, "another certificate")
		second := m.secret(m.addonNamespace, helloKube)
		assert.Equal(t, first.UID, second.UID)
		assert.Equal(t, first.Data["kubeconfig"], second.Data["kubeconfig"])
		assert.NotEqual(t, first.Data["tls.key"], second.Data["tls.key"])
		assert.Equal(t, "user", m.who(second).Username)
	})
}

// Shows: registration/requests-limited
func TestRequestsThatNobodyDecidesAboutAreLimited(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newMember(t, "addon-capped")
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user-0"))
		for i := range 15 {
			m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
				s.Registrations[0].KubeClient.Subject.User = fmt.Sprintf("user-%d", i)
			})
			if i < issue.MaxRequests {
				m.awaitRequests(hello, i+1)
			}
		}
		told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
		assert.Equal(t, "Stop creating csr since there are too many csr created already on hub", told.Message)
		assert.Len(t, m.requests(hello), issue.MaxRequests)
		// One that is decided makes room again, without anybody cleaning up.
		m.decide(m.requests(hello)[0], certificatesv1.CertificateDenied, "Enough")
		m.awaitRequests(hello, issue.MaxRequests+1)
	})
}

// Shows: registration/broken-registration-alone
func TestABrokenRegistrationDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-several")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	other := kubeClient("other")
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"), other, customSigner(ownSigner))
	for _, request := range m.awaitRequests(hello, 2) {
		if request.Spec.SignerName == ownSigner {
			m.sign(request)
			continue
		}
		m.approve(request)
	}
	assert.Equal(t, "user", m.who(m.awaitSecret(m.addonNamespace, helloKube)).Username)
	m.awaitSecret(m.addonNamespace, helloOwn)
	const want = "Failed to rotated client certificate registrations[1]: another registration before it has the same " +
		"secret hello-hub-kubeconfig and another subject: only that is served (signer kubernetes.io/kube-apiserver-client)"
	m.eventually(func() bool {
		return m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed").Message == want
	}, "of the others there is nothing more to say")
	for i := range 2 {
		assert.Equal(t, "csr", m.addon().Status.Registrations[i].KubeClient.Driver, "every entry is declared")
	}
}

// Shows: registration/credentials-stay-while-deleting
func TestCredentialsStayWhileAnAddonIsBeingDeleted(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-deleting")
	m.createNamespace(m.addonNamespace)
	config := m.accepted()
	stop := m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.approve(m.awaitRequests(hello, 1)[0])
	m.awaitSecret(m.addonNamespace, helloKube)
	m.finalizers("example.com/hook")
	m.removeAddon()
	m.awaitQuiet()
	require.NotNil(t, m.secret(m.addonNamespace, helloKube))
	stop()
	m.serve(config)
	m.awaitQuiet()
	require.NotNil(t, m.secret(m.addonNamespace, helloKube))
	assert.Equal(t, "user", m.who(m.secret(m.addonNamespace, helloKube)).Username)
	m.finalizers()
	m.awaitGone(m.addonNamespace, helloKube)
}

// finalizers sets the finalizers of the add-on.
func (m *member) finalizers(all ...string) {
	m.t.Helper()
	m.eventually(func() bool {
		before := m.addon()
		after := before.DeepCopy()
		after.Finalizers = all
		_, err := m.addons().PatchAddOn(m.t.Context(), before, after)
		return err == nil
	}, "a write of the finalizers")
}

func TestNamesThatAreTooLongAreRefusedWithAWord(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-names")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	long := strings.Repeat("a", 60) + "."
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace,
		customSigner(strings.Repeat(long, 4)+"com/s"), kubeClient("user"))
	told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	assert.Contains(t, told.Message, "which is longer than the 253 characters that Kubernetes allows")
	assert.Len(t, m.awaitRequests(hello, 1), 1, "the other one is asked for")

	name := strings.Repeat("a", 64)
	require.NoError(t, m.addons().CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: name},
	}))
	key := types.NamespacedName{Namespace: m.name, Name: name}
	m.eventually(func() bool {
		before, err := m.addons().GetAddOn(t.Context(), key)
		require.NoError(t, err)
		after := before.DeepCopy()
		after.Status.Registrations = []addonv1beta1.RegistrationConfig{kubeClient("user")}
		_, err = m.addons().PatchAddOnStatus(t.Context(), before, after)
		return err == nil
	}, "a write of the status")
	m.eventually(func() bool {
		addon, err := m.addons().GetAddOn(t.Context(), key)
		require.NoError(t, err)
		told := meta.FindStatusCondition(addon.Status.Conditions, "ClusterCertificateRotated")
		return told != nil && strings.Contains(told.Message, "cannot be the value of label open-cluster-management.io/addon-name")
	}, "the long name is refused")
}
