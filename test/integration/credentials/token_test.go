package credentials_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubtoken "github.com/spokelet/spokelet/hub/token"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

// runHubTokens runs the reconciler of the hub manager that makes ServiceAccounts for tokens, with the rights that it
// has there.
func runHubTokens(t *testing.T, hub *site) {
	t.Helper()
	config := hub.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	require.NoError(t, err)
	require.NoError(t, (&hubtoken.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), AddOns: addonapi.Client{Client: mgr.GetClient()},
		Clock: clock.RealClock{},
	}).SetupWithManager(mgr))
	suite.StartManager(t, "the token reconciler", mgr)
}

// who uses the credential in a Secret as an add-on agent does that has it mounted, and returns who the hub takes it
// for.
func (m *member) who(secret *corev1.Secret) authenticationv1.UserInfo {
	m.t.Helper()
	user, err := m.tryWho(secret)
	require.NoError(m.t, err)
	return user
}

func (m *member) tryWho(secret *corev1.Secret) (authenticationv1.UserInfo, error) {
	m.t.Helper()
	dir := m.t.TempDir()
	for name, content := range secret.Data {
		require.NoError(m.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	require.NoError(m.t, err)
	c, err := client.New(config, client.Options{Scheme: suite.Scheme(), Mapper: m.hub.Client.RESTMapper()})
	require.NoError(m.t, err)
	var review authenticationv1.SelfSubjectReview
	err = c.Create(m.t.Context(), &review)
	return review.Status.UserInfo, err
}

// account returns the ServiceAccount of the add-on on the hub.
func (m *member) account() *corev1.ServiceAccount {
	m.t.Helper()
	var account corev1.ServiceAccount
	key := types.NamespacedName{Namespace: m.name, Name: token.ServiceAccountName(hello)}
	require.NoError(m.t, m.hub.Client.Get(m.t.Context(), key, &account))
	return &account
}

// awaitToken waits for a Secret whose token is for the ServiceAccount as it is now.
func (m *member) awaitToken(namespace string) *corev1.Secret {
	m.t.Helper()
	var secret *corev1.Secret
	m.eventually(func() bool {
		secret = m.secret(namespace, helloKube)
		if secret == nil {
			return false
		}
		claims, err := token.Parse(secret.Data[token.KeyToken])
		return err == nil && claims.ServiceAccountUID == m.account().UID
	}, "a token in secret %s/%s", namespace, helloKube)
	return secret
}

// newTokenMember makes a cluster whose agent takes tokens.
func newTokenMember(t *testing.T, name string) *member {
	t.Helper()
	m := newMember(t, name)
	m.driver = token.Driver
	return m
}

// eachWay runs a test in both versions of the add-on API and through both kinds of proxies.
func eachWay(t *testing.T, test func(t *testing.T, wire addonapi.Wire, scheme string)) {
	t.Helper()
	for name, way := range map[string]struct {
		wire   addonapi.Wire
		scheme string
	}{
		"v1alpha1": {addonapi.WireAlpha, ""}, "v1beta1": {addonapi.WireBeta, ""},
		"through an http proxy":  {addonapi.WireAlpha, "http"},
		"through an https proxy": {addonapi.WireAlpha, "https"},
	} {
		t.Run(name, func(t *testing.T) { test(t, way.wire, way.scheme) })
	}
}

// eachWire runs a test in both versions of the add-on API.
func eachWire(t *testing.T, test func(t *testing.T, wire addonapi.Wire)) {
	t.Helper()
	for _, wire := range []addonapi.Wire{addonapi.WireAlpha, addonapi.WireBeta} {
		t.Run(string(wire), func(t *testing.T) { test(t, wire) })
	}
}

// eachWireAtOnce is eachWire for tests that mostly wait.
func eachWireAtOnce(t *testing.T, test func(t *testing.T, wire addonapi.Wire)) {
	t.Helper()
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		t.Parallel()
		test(t, wire)
	})
}

// Shows: registration/token-lifecycle
func TestAnAddonGetsAToken(t *testing.T) {
	runHubTokens(t, home)
	eachWay(t, func(t *testing.T, wire addonapi.Wire, scheme string) {
		t.Helper()
		m := newTokenMember(t, "token")
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		config := m.accepted()
		if scheme != "" {
			config = m.through(newProxy(t, scheme), config)
		}
		m.serve(config)
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"), customSigner(ownSigner))
		secret := m.awaitToken(m.addonNamespace)
		assert.Equal(t, m.name, string(secret.Data["cluster-name"]))
		assert.True(t, m.server.DescribesToken(secret.Data["kubeconfig"]))
		assert.NotContains(t, secret.Data, "tls.crt")
		assert.Equal(t, token.User(m.name, hello), m.who(secret).Username)

		claims, err := token.Parse(secret.Data["token"])
		require.NoError(t, err)
		told := m.awaitCondition("TokenRefreshed", metav1.ConditionTrue, "AddonTokenRefreshed")
		assert.Equal(t, "Addon token refreshed, expires at "+claims.ExpiresAt.Format(time.RFC3339), told.Message)
		declared := m.addon().Status.Registrations[0].KubeClient
		assert.Equal(t, "token", declared.Driver)
		assert.Equal(t, addonv1beta1.BaseSubject{User: token.User(m.name, hello)}, declared.Subject.BaseSubject)

		// A custom signer works by certificate request all the same.
		request := m.awaitRequests(hello, 1)[0]
		assert.Equal(t, ownSigner, request.Spec.SignerName)
		m.sign(request)
		m.awaitSecret(m.addonNamespace, helloOwn)
		m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
		assert.Len(t, m.requests(hello), 1)

		m.removeAddon()
		m.awaitGone(m.addonNamespace, helloKube)
		m.awaitGone(m.addonNamespace, helloOwn)
	})
}

// Shows: registration/token-waits-for-namespace
func TestATokenWaitsForItsNamespace(t *testing.T) {
	runHubTokens(t, home)
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newTokenMember(t, "token-late")
		m.wire = wire
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		m.eventually(func() bool {
			told := meta.FindStatusCondition(m.addon().Status.Conditions, "TokenRefreshed")
			return told != nil && strings.Contains(told.Message, "namespace "+m.addonNamespace+" of the add-on agent does not exist")
		}, "what it waits for")
		assert.Nil(t, m.secret(m.addonNamespace, helloKube))
		m.createNamespace(m.addonNamespace)
		m.awaitToken(m.addonNamespace)
		m.awaitCondition("TokenRefreshed", metav1.ConditionTrue, "AddonTokenRefreshed")
	})
}

// Shows: registration/shared-namespace
func TestTheNamespaceThatAddOnsShareComesBack(t *testing.T) {
	runHubTokens(t, home)
	m := newTokenMember(t, "token-shared")
	m.serve(m.accepted())
	require.NoError(t, client.IgnoreNotFound(m.spoke.Client.Delete(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgentAddon},
	})))
	m.eventually(func() bool {
		var shared corev1.Namespace
		return apierrors.IsNotFound(m.spoke.Client.Get(t.Context(), client.ObjectKey{Name: names.NamespaceAgentAddon}, &shared))
	}, "another add-on took it along")
	m.enable(addonv1beta1.HealthCheckModeCustomized, names.NamespaceAgentAddon, kubeClient("user"))
	m.awaitToken(names.NamespaceAgentAddon)
	m.removeAddon()
	m.awaitGone(names.NamespaceAgentAddon, helloKube)
}

// Shows: registration/service-account-recreated
func TestADeletedServiceAccountLeadsToAnotherTokenAtOnce(t *testing.T) {
	runHubTokens(t, home)
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newTokenMember(t, "token-again")
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		first, before := m.awaitToken(m.addonNamespace), m.account()
		require.NoError(t, m.hub.Client.Delete(t.Context(), before))
		m.eventually(func() bool {
			var account corev1.ServiceAccount
			err := m.hub.Client.Get(t.Context(), client.ObjectKeyFromObject(before), &account)
			return err == nil && account.UID != before.UID
		}, "the ServiceAccount is made again")
		second := m.awaitToken(m.addonNamespace)
		assert.NotEqual(t, first.Data["token"], second.Data["token"])
		assert.Equal(t, first.Data["kubeconfig"], second.Data["kubeconfig"])
		assert.Equal(t, string(m.account().UID), m.who(second).UID)
	})
}

// Shows: registration/certificates-to-tokens
func TestAnAgentThatTakesTokensFromNowOnKeepsTheCertificateUntilThen(t *testing.T) {
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newMember(t, "to-token")
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		config := m.accepted()
		stop := m.serve(config)
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		m.approve(m.awaitRequests(hello, 1)[0])
		first := m.awaitSecret(m.addonNamespace, helloKube)
		assert.Equal(t, "user", m.who(first).Username)
		m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
		// Another request is on its way when the agent ends.
		m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) { s.Registrations[0].KubeClient.Subject.User = "other" })
		m.awaitRequests(hello, 2)
		m.eventually(func() bool { return len(m.pending()) == 1 }, "a key waits")
		stop()

		m.driver = token.Driver
		m.serve(config)
		m.eventually(func() bool { return m.addon().Status.Registrations[0].KubeClient.Driver == "token" }, "the declaration")
		m.never(func() bool { return meta.FindStatusCondition(m.addon().Status.Conditions, "TokenRefreshed") != nil },
			"the hub is waited for without a condition")
		still := m.secret(m.addonNamespace, helloKube)
		require.NotNil(t, still)
		assert.Equal(t, first.Data, still.Data, "the certificate is in use until there is a token")
		runHubTokens(t, home)
		second := m.awaitToken(m.addonNamespace)
		assert.Equal(t, first.UID, second.UID)
		assert.Equal(t, first.Data["tls.crt"], second.Data["tls.crt"], "agents that run have the certificate in use")
		assert.Equal(t, first.Data["tls.key"], second.Data["tls.key"])
		assert.True(t, m.server.DescribesToken(second.Data["kubeconfig"]))
		assert.Equal(t, token.User(m.name, hello), m.who(second).Username)
		m.awaitCondition("TokenRefreshed", metav1.ConditionTrue, "AddonTokenRefreshed")
		m.eventually(func() bool {
			return meta.FindStatusCondition(m.addon().Status.Conditions, "ClusterCertificateRotated") == nil
		}, "the end of the condition of the other driver")
		m.eventually(func() bool { return len(m.pending()) == 0 }, "the abandoned key goes")
		assert.Len(t, m.requests(hello), 2)
	})
}

// Shows: registration/tokens-to-certificates
func TestAnAgentThatTakesCertificatesFromNowOnKeepsTheTokenUntilThen(t *testing.T) {
	runHubTokens(t, home)
	eachWire(t, func(t *testing.T, wire addonapi.Wire) {
		t.Helper()
		m := newTokenMember(t, "to-csr")
		m.wire = wire
		m.createNamespace(m.addonNamespace)
		config := m.accepted()
		stop := m.serve(config)
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		first := m.awaitToken(m.addonNamespace)
		m.awaitCondition("TokenRefreshed", metav1.ConditionTrue, "AddonTokenRefreshed")
		stop()

		m.driver = ""
		m.serve(config)
		m.eventually(func() bool { return m.addon().Status.Registrations[0].KubeClient.Driver == "csr" }, "the declaration")
		m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) { // as the hub manager does
			s.Registrations[0].KubeClient.Subject = kubeClient("user").KubeClient.Subject
		})
		request := m.awaitRequests(hello, 1)[0]
		assert.Equal(t, first.Data, m.secret(m.addonNamespace, helloKube).Data, "the token stays until there is a certificate")
		m.approve(request)
		second := m.awaitSecret(m.addonNamespace, helloKube)
		assert.Equal(t, first.UID, second.UID)
		assert.NotContains(t, second.Data, "token")
		assert.True(t, m.server.Describes(second.Data["kubeconfig"]))
		assert.Equal(t, "user", m.who(second).Username)
		m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
		m.eventually(func() bool {
			return meta.FindStatusCondition(m.addon().Status.Conditions, "TokenRefreshed") == nil
		}, "the end of the condition of the other driver")
	})
}

// playInfrastructure makes what the hub makes for tokens, without its Role where that is left out, and says so.
func (m *member) playInfrastructure(role bool) {
	m.t.Helper()
	made := token.Render(m.name, hello)
	objects := []client.Object{made.ServiceAccount}
	if role {
		objects = append(objects, made.Role, made.Binding)
	}
	for _, object := range objects {
		require.NoError(m.t, m.hub.Client.Create(m.t.Context(), object))
	}
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		meta.SetStatusCondition(&s.Conditions, *token.Ready(m.name, hello, made.ServiceAccount.UID))
	})
}

func TestATokenThatTheHubRefusesIsToldAtOnceAndAskedForAgainLater(t *testing.T) {
	t.Parallel()
	m := newTokenMember(t, "token-refused")
	m.createNamespace(m.addonNamespace)
	var asked atomic.Int64
	config := m.accepted()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/token") {
				asked.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"), customSigner(ownSigner))
	m.eventually(func() bool { return m.addon().Status.Registrations[0].KubeClient.Driver == "token" }, "the declaration")
	m.playInfrastructure(false)
	m.eventually(func() bool {
		told := meta.FindStatusCondition(m.addon().Status.Conditions, "TokenRefreshed")
		return told != nil && strings.HasPrefix(told.Message,
			"Failed to create token: asking the hub for a token of ServiceAccount "+m.name+"/hello-agent: ") &&
			strings.Contains(told.Message, "forbidden")
	}, "the refusal is told")
	// The other registration goes its way.
	m.sign(m.awaitRequests(hello, 1)[0])
	m.awaitSecret(m.addonNamespace, helloOwn)
	assert.Less(t, asked.Load(), int64(30), "the pauses grow")
	made := token.Render(m.name, hello)
	for _, object := range []client.Object{made.Role, made.Binding} {
		require.NoError(t, m.hub.Client.Create(t.Context(), object))
	}
	m.awaitToken(m.addonNamespace)
	m.awaitCondition("TokenRefreshed", metav1.ConditionTrue, "AddonTokenRefreshed")
}

func TestInfrastructureThatIsNotReadyIsToldWithTheWordsOfTheHub(t *testing.T) {
	t.Parallel()
	m := newTokenMember(t, "token-unready")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace, kubeClient("user"))
	m.eventually(func() bool { return m.addon().Status.Registrations[0].KubeClient.Driver == "token" }, "the declaration")
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		meta.SetStatusCondition(&s.Conditions, *token.NotReady("there is another of that name"))
	})
	m.eventually(func() bool {
		told := meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		return told != nil && strings.Contains(told.Message, " Its credential for the hub is not there yet: the hub has no "+
			"ServiceAccount "+m.name+"/hello-agent ready: Failed to apply token infrastructure: there is another of that name.")
	}, "the words of the hub")
	assert.Nil(t, meta.FindStatusCondition(m.addon().Status.Conditions, "TokenRefreshed"), "nothing has failed here")
}

func TestAnAgentCanAskForTheTokensOfItsAddonsOnly(t *testing.T) {
	runHubTokens(t, home)
	m := newTokenMember(t, "token-rights")
	m.createNamespace(m.addonNamespace)
	config := m.accepted()
	m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.awaitToken(m.addonNamespace)
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: "other"}}
	require.NoError(t, m.hub.Client.Create(t.Context(), other))
	agent, err := client.New(config, client.Options{Scheme: suite.Scheme(), Mapper: m.hub.Client.RESTMapper()})
	require.NoError(t, err)
	ask := func(account *corev1.ServiceAccount) error {
		return agent.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
	}
	require.NoError(t, ask(m.account()))
	require.ErrorContains(t, ask(other), "forbidden")
}
