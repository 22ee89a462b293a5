package credentials_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	hello      = "hello"
	helloKube  = "hello-hub-kubeconfig"
	helloOwn   = "hello-example.com-own-client-cert"
	ownSigner  = "example.com/own"
	ownSigner2 = "example.com/other"
)

// addons is how the hub manager, played by the tests, reads and writes add-ons.
func (m *member) addons() addonapi.Client { return addonapi.Client{Client: m.hub.Client, Wire: m.wire} }

func kubeClient(user string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: []string{"g1", "g2"}}},
	}}
}

func customSigner(name string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
		SignerName: name, Subject: addonv1beta1.Subject{BaseSubject: addonv1beta1.BaseSubject{User: "me"}},
	}}
}

// enable creates the add-on as an installer does and fills its status as the hub manager does.
func (m *member) enable(mode addonv1beta1.HealthCheckMode, namespace string, r ...addonv1beta1.RegistrationConfig) {
	m.t.Helper()
	require.NoError(m.t, m.addons().CreateAddOn(m.t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: hello, Annotations: m.annotations},
	}))
	m.change(func(status *addonv1beta1.ManagedClusterAddOnStatus) {
		status.HealthCheck.Mode, status.Namespace, status.Registrations = mode, namespace, r
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: "RegistrationApplied", Status: metav1.ConditionTrue, Reason: "SetPermissionApplied",
		})
	})
}

// change writes the status of the add-on until nobody else is faster.
func (m *member) change(change func(status *addonv1beta1.ManagedClusterAddOnStatus)) {
	m.t.Helper()
	m.eventually(func() bool {
		before := m.addon()
		after := before.DeepCopy()
		change(&after.Status)
		_, err := m.addons().PatchAddOnStatus(m.t.Context(), before, after)
		if err != nil {
			require.True(m.t, apierrors.IsConflict(err), "%v", err)
		}
		return err == nil
	}, "a write of the status")
}

func (m *member) addon() *addonv1beta1.ManagedClusterAddOn {
	m.t.Helper()
	addon, err := m.addons().GetAddOn(m.t.Context(), types.NamespacedName{Namespace: m.name, Name: hello})
	require.NoError(m.t, err)
	return addon
}

// awaitCondition waits for a condition of the add-on with a status and a reason.
func (m *member) awaitCondition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	m.t.Helper()
	var found *metav1.Condition
	m.eventually(func() bool {
		found = meta.FindStatusCondition(m.addon().Status.Conditions, kind)
		return found != nil && found.Status == status && found.Reason == reason
	}, "condition %s=%s/%s", kind, status, reason)
	return *found
}

func (m *member) awaitGone(namespace, name string) {
	m.t.Helper()
	m.eventually(func() bool { return m.secret(namespace, name) == nil }, "the end of secret %s/%s", namespace, name)
}

func (m *member) removeAddon() {
	m.t.Helper()
	addon := m.addon()
	require.NoError(m.t, m.addons().DeleteAddOn(m.t.Context(), addon))
}

// Shows: registration/credential-lifecycle, registration/through-http-proxy, registration/through-https-proxy
// Shows: registration/custom-signer-secret
func TestAnAddonGetsItsCredentials(t *testing.T) {
	t.Parallel()
	eachWay(t, testAnAddonGetsItsCredentials)
}

func testAnAddonGetsItsCredentials(t *testing.T, wire addonapi.Wire, scheme string) {
	t.Helper()
	m := newMember(t, "addon")
	m.wire = wire
	m.createNamespace(m.addonNamespace)
	config := m.accepted()
	if scheme != "" {
		config = m.through(newProxy(t, scheme), config)
	}
	m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"), customSigner(ownSigner))

	byS := map[string]certificatesv1.CertificateSigningRequest{}
	for _, request := range m.awaitRequests(hello, 2) {
		byS[request.Spec.SignerName] = request
	}
	kube, own := byS[certificatesv1.KubeAPIServerClientSignerName], byS[ownSigner]
	assert.Regexp(t, "^addon-"+m.name+"-hello-[0-9a-f]{10}$", kube.Name)
	assert.Equal(t, map[string]string{names.LabelClusterName: m.name, names.LabelAddonName: hello}, kube.Labels)
	assert.Equal(t, csr.ClusterUser(m.name, "a1"), kube.Spec.Username)
	m.approve(kube)
	m.sign(own)

	secret := m.awaitSecret(m.addonNamespace, helloKube)
	assert.Equal(t, m.name, string(secret.Data["cluster-name"]))
	assert.True(t, m.server.Describes(secret.Data["kubeconfig"]))
	want, err := csr.ForAddon(m.name, hello, kubeClient("user"))
	require.NoError(t, err)
	verdict := issue.JudgePair(issue.PairOf(secret), want, time.Now())
	assert.True(t, verdict.Fits, verdict.Why)
	user := m.who(secret)
	assert.Equal(t, "user", user.Username)
	assert.Subset(t, user.Groups, []string{"g1", "g2"})
	secret = m.awaitSecret(m.addonNamespace, helloOwn)
	assert.NotContains(t, secret.Data, "kubeconfig")
	assert.Equal(t, m.name, string(secret.Data["cluster-name"]))

	told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	assert.Contains(t, told.Message, "client certificate rotated starting from ")
	assert.Equal(t, "csr", m.addon().Status.Registrations[0].KubeClient.Driver)
	m.eventually(func() bool { return len(m.pending()) == 0 }, "the pending keys are gone")
	assert.Len(t, m.requests(hello), 2)

	m.removeAddon()
	m.awaitGone(m.addonNamespace, helloKube)
	m.awaitGone(m.addonNamespace, helloOwn)
}

func TestADeniedAddonIsToldAtOnce(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-denied")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	request := m.awaitRequests(hello, 1)[0]
	m.decide(request, certificatesv1.CertificateDenied, "NotToday")
	told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	assert.Contains(t, told.Message, `Failed to rotated client certificate csr "`+request.Name+
		`" was denied: NotToday: by a test; a new csr is made at `)
	assert.Len(t, m.requests(hello), 1)
}

func TestAMissingNamespaceCostsNoSecondRequest(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-late")
	config := m.accepted()
	stop := m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.approve(m.awaitRequests(hello, 1)[0])
	told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	assert.Contains(t, told.Message, "namespace "+m.addonNamespace+" of the add-on agent does not exist")
	m.eventually(func() bool {
		pending := m.pending()
		return len(pending) == 1 && len(pending[0].Data[csr.KeyCertificate]) > 0
	}, "the certificate is kept")

	stop()
	m.serve(config)
	m.createNamespace(m.addonNamespace)
	m.awaitSecret(m.addonNamespace, helloKube)
	m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	assert.Len(t, m.requests(hello), 1)
	m.eventually(func() bool { return len(m.pending()) == 0 }, "the pending key is gone")
}

// Shows: registration/waits-for-namespace
func TestAWaitingSecretAppearsWithItsNamespaceWithoutARestart(t *testing.T) {
	t.Parallel()
	eachWire(t, testAWaitingSecretAppearsWithItsNamespace)
}

func testAWaitingSecretAppearsWithItsNamespace(t *testing.T, wire addonapi.Wire) {
	t.Helper()
	m := newMember(t, "addon-soon")
	m.wire = wire
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.approve(m.awaitRequests(hello, 1)[0])
	m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	m.createNamespace(m.addonNamespace)
	m.awaitSecret(m.addonNamespace, helloKube)
	m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	assert.Len(t, m.requests(hello), 1)
}

// Shows: registration/credential-replaced-in-place
func TestACredentialInUseLivesUntilItsSuccessorIsThere(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-changes")
	m.createNamespace(m.addonNamespace)
	m.createNamespace(m.addonNamespace + "2")
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.approve(m.awaitRequests(hello, 1)[0])
	first := m.awaitSecret(m.addonNamespace, helloKube)

	// Another subject: the same Secret, replaced in place.
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) { s.Registrations[0].KubeClient.Subject.User = "other" })
	requests := m.awaitRequests(hello, 2)
	still := m.secret(m.addonNamespace, helloKube)
	require.NotNil(t, still)
	assert.Equal(t, first.Data, still.Data)
	m.approveAll(requests)
	m.eventually(func() bool {
		return string(m.secret(m.addonNamespace, helloKube).Data["tls.crt"]) != string(first.Data["tls.crt"])
	}, "the successor in the same secret")
	assert.Equal(t, first.UID, m.secret(m.addonNamespace, helloKube).UID)

	// A registration that is empty for a moment, by a hub that does not say that it means it.
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		s.Registrations = nil
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: "RegistrationApplied", Status: metav1.ConditionFalse, Reason: "SetPermissionFailed",
		})
	})
	m.never(func() bool { return m.secret(m.addonNamespace, helloKube) == nil }, "the credential stays")

	// Another namespace: the old Secret goes when the new one is there.
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		s.Registrations = []addonv1beta1.RegistrationConfig{kubeClient("other")}
		s.Namespace = m.addonNamespace + "2"
	})
	requests = m.awaitRequests(hello, 3)
	require.NotNil(t, m.secret(m.addonNamespace, helloKube))
	m.approveAll(requests)
	m.awaitSecret(m.addonNamespace+"2", helloKube)
	m.awaitGone(m.addonNamespace, helloKube)

	// No registration any more, and the hub says so.
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		s.Registrations = nil
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: "RegistrationApplied", Status: metav1.ConditionTrue, Reason: "NilRegistration",
		})
	})
	m.awaitGone(m.addonNamespace+"2", helloKube)
	assert.Len(t, m.requests(hello), 3)
}

// approveAll approves the requests that nobody decided on yet.
func (m *member) approveAll(requests []certificatesv1.CertificateSigningRequest) {
	m.t.Helper()
	for _, request := range requests {
		if csr.Undecided(&request) {
			m.approve(request)
		}
	}
}

// Shows: registration/changed-signer
func TestAnotherSignerRemovesTheOldSecretWhenTheNewOneIsThere(t *testing.T) {
	t.Parallel()
	eachWire(t, testAnotherSignerRemovesTheOldSecret)
}

func testAnotherSignerRemovesTheOldSecret(t *testing.T, wire addonapi.Wire) {
	t.Helper()
	m := newMember(t, "addon-signer")
	m.wire = wire
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, customSigner(ownSigner))
	m.sign(m.awaitRequests(hello, 1)[0])
	m.awaitSecret(m.addonNamespace, helloOwn)
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		s.Registrations = []addonv1beta1.RegistrationConfig{customSigner(ownSigner2)}
	})
	for _, request := range m.awaitRequests(hello, 2) {
		if request.Spec.SignerName == ownSigner2 {
			require.NotNil(t, m.secret(m.addonNamespace, helloOwn))
			m.sign(request)
		}
	}
	m.awaitSecret(m.addonNamespace, "hello-example.com-other-client-cert")
	m.awaitGone(m.addonNamespace, helloOwn)
}

func TestACertificateIsReplacedBeforeItExpires(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-rotates")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, customSigner(ownSigner))
	m.signFor(m.awaitRequests(hello, 1)[0], 8*time.Second)
	first := m.awaitSecret(m.addonNamespace, helloOwn)
	var again certificatesv1.CertificateSigningRequest
	for _, request := range m.awaitRequests(hello, 2) {
		if len(request.Status.Certificate) == 0 {
			again = request
		}
	}
	want, err := csr.ForAddon(m.name, hello, customSigner(ownSigner))
	require.NoError(t, err)
	verdict := issue.JudgePair(issue.PairOf(first), want, again.CreationTimestamp.Time)
	assert.True(t, verdict.Fits, "asked for while the old one is good: %s", verdict.Why)
	assert.True(t, verdict.Due(again.CreationTimestamp.Add(time.Second)), "not asked for before %s", verdict.RotateAt)
	m.sign(again)
	m.eventually(func() bool {
		return string(m.secret(m.addonNamespace, helloOwn).Data["tls.key"]) != string(first.Data["tls.key"])
	}, "another key")
	assert.Len(t, m.requests(hello), 2)
}

// Shows: registration/secrets-found-after-restart
func TestSecretsOfAnAddonThatWentWhileTheAgentWasDownAreRemoved(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-orphan")
	m.createNamespace(m.addonNamespace)
	config := m.accepted()
	stop := m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"), customSigner(ownSigner))
	for _, request := range m.awaitRequests(hello, 2) {
		if request.Spec.SignerName != ownSigner {
			m.approve(request)
		}
	}
	m.awaitSecret(m.addonNamespace, helloKube)
	m.eventually(func() bool { return len(m.pending()) == 1 }, "one key still waits")
	stop()
	m.removeAddon()
	bystander := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.addonNamespace, Name: "bystander",
		Labels: map[string]string{names.LabelClusterName: m.name, names.LabelAddonName: hello},
	}}
	require.NoError(t, m.spoke.Client.Create(t.Context(), bystander))

	m.serve(config)
	m.awaitGone(m.addonNamespace, helloKube)
	m.eventually(func() bool { return len(m.pending()) == 0 }, "the pending key of the add-on is gone too")
	assert.NotNil(t, m.secret(m.addonNamespace, "bystander"), "a Secret that is not ours stays")
}

func TestASecretOfAFormerAgentIsTakenOver(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-adopts")
	m.createNamespace(m.addonNamespace)
	config := m.accepted()
	stop := m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.approve(m.awaitRequests(hello, 1)[0])
	m.awaitSecret(m.addonNamespace, helloKube)
	stop()
	secret := m.secret(m.addonNamespace, helloKube) // as the agent left it
	// As an agent leaves it that marks nothing.
	secret.Labels, secret.Annotations = nil, nil
	secret.Data["theirs"] = []byte("stays")
	require.NoError(t, m.spoke.Client.Update(t.Context(), secret))

	m.serve(config)
	m.eventually(func() bool { return m.secret(m.addonNamespace, helloKube).Labels[names.LabelCredential] != "" }, "our mark")
	after := m.secret(m.addonNamespace, helloKube)
	assert.Equal(t, secret.Data, after.Data)
	assert.Len(t, m.requests(hello), 1, "a good certificate is not asked for again")
	m.removeAddon()
	m.awaitGone(m.addonNamespace, helloKube)
}
