package credentials_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/agent/addon"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// member is one cluster with its agent; unless a test says otherwise, hub, managed cluster and the cluster that the
// agent runs on are the same control plane.
type member struct {
	t *testing.T
	// hub, spoke and host are where everything is.
	hub, spoke, host *site
	// name is the name of the cluster; the namespaces of its agent and of its add-on are called like it with a suffix.
	name, namespace, addonNamespace string
	server                          issue.HubServer
	// wire is the version of the add-on API that agent and hub speak.
	wire addonapi.Wire
	// driver, tokenSeconds and leaseGrace are options of the agent.
	driver       string
	tokenSeconds int64
	leaseGrace   time.Duration
	// fast is by how much the clock of the agent is ahead, and aware reports whether the agent knows.
	fast  time.Duration
	aware bool
	// annotations are those with which the add-on is created.
	annotations map[string]string
	// hubRequests and spokeRequests count what the agent sends, watches aside.
	hubRequests, spokeRequests atomic.Int64
	credentials                chan join.Credential
}

// newMember makes a cluster whose name starts as given and was never used before.
func newMember(t *testing.T, name string) *member {
	t.Helper()
	return newMemberOn(t, name, home, home, home)
}

// newMemberOn makes a cluster of a hub whose agent runs on the host.
func newMemberOn(t *testing.T, name string, hub, spoke, host *site) *member {
	t.Helper()
	name += "-" + utilrand.String(5)
	m := &member{
		t: t, hub: hub, spoke: spoke, host: host, wire: addonapi.WireAlpha,
		name: name, namespace: name + "-agent", addonNamespace: name + "-ns", credentials: make(chan join.Credential, 100),
		server: issue.HubServer{Cluster: "hub", Server: hub.Host, CAData: hub.CA()},
	}
	host.createNamespace(t, m.namespace)
	return m
}

func (s *site) createNamespace(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, s.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// createNamespace makes a namespace on the managed cluster.
func (m *member) createNamespace(name string) {
	m.t.Helper()
	m.spoke.createNamespace(m.t, name)
}

// accept plays the hub that accepts the cluster.
func (m *member) accept() {
	m.t.Helper()
	require.NoError(m.t, m.hub.Apply(m.t.Context(), acceptance(m.name)))
}

// identity is who the agent is.
func (m *member) identity() csr.Identity { return csr.Identity{Cluster: m.name, Agent: "a1"} }

// accepted is the credential of an agent that joined long ago.
func (m *member) accepted() *rest.Config {
	m.t.Helper()
	m.accept()
	require.NoError(m.t, m.hub.Client.Create(m.t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	config, err := m.hub.User(csr.ClusterUser(m.name, "a1"), csr.ClusterGroup(m.name), csr.GroupManagedClusters)
	require.NoError(m.t, err)
	return config
}

// counted counts the requests of a configuration that are no watches.
func counted(config *rest.Config, counter *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("watch") == "" {
				counter.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// run runs reconcilers until the test ends or the returned function is called. What the caches hold is what the
// composition root of the agent configures.
func (m *member) run(
	hubConfig *rest.Config, setup func(mgr ctrl.Manager, hub, spoke cluster.Cluster) error,
) (stop func()) {
	m.t.Helper()
	mgr, err := ctrl.NewManager(counted(m.host.agent, &m.spokeRequests), ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{
				m.namespace: {}, cache.AllNamespaces: {LabelSelector: addon.SecretSelector(m.name)},
			}},
		}},
	})
	require.NoError(m.t, err)
	own := cache.ByObject{Namespaces: map[string]cache.Config{m.name: {}}}
	hub := m.addCluster(mgr, counted(hubConfig, &m.hubRequests), map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Field: fields.OneTermEqualSelector("metadata.name", m.name)},
		&certificatesv1.CertificateSigningRequest{}: {
			Label: labels.SelectorFromSet(labels.Set{names.LabelClusterName: m.name}),
		},
		&addonv1alpha1.ManagedClusterAddOn{}: own,
		&addonv1beta1.ManagedClusterAddOn{}:  own,
	})
	spoke := cluster.Cluster(mgr)
	if m.spoke != m.host {
		spoke = m.addCluster(mgr, counted(m.spoke.agent, &m.spokeRequests), map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: addon.SecretSelector(m.name)},
		})
	}
	require.NoError(m.t, setup(mgr, hub, spoke))
	return suite.StartProgram(m.t, "the agent of "+m.name, mgr.Start).Stop
}

func (m *member) addCluster(
	mgr ctrl.Manager, config *rest.Config, holds map[client.Object]cache.ByObject,
) cluster.Cluster {
	m.t.Helper()
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = suite.Scheme()
		o.Cache = cache.Options{ReaderFailOnMissingInformer: true, ByObject: holds}
	})
	require.NoError(m.t, err)
	require.NoError(m.t, mgr.Add(c))
	return c
}

// serve runs the reconcilers of an agent that has joined.
func (m *member) serve(config *rest.Config) (stop func()) {
	m.t.Helper()
	return m.run(config, func(mgr ctrl.Manager, hub, spoke cluster.Cluster) error {
		return (&addon.Reconciler{
			Hub: hub, Wire: m.wire, Agent: mgr, Spoke: spoke, Namespace: m.namespace, Cluster: m.name, Server: m.server,
			User: csr.ClusterUser(m.name, "a1"), LeaseGrace: m.leaseGrace, Driver: m.driver, TokenExpirationSeconds: m.tokenSeconds,
			Clock: fastClock{by: m.fast}, Ahead: m.ahead,
		}).SetupWithManager(mgr)
	})
}

// ahead holds what the agent knows of its clock.
func (m *member) ahead() (by time.Duration, known bool) {
	if m.aware {
		return m.fast, true
	}
	return 0, false
}

// fastClock is ahead of the clock of the machine.
type fastClock struct {
	clock.RealClock
	by time.Duration
}

func (c fastClock) Now() time.Time                   { return c.RealClock.Now().Add(c.by) }
func (c fastClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// requests returns the request objects of this cluster, of one add-on or of the cluster itself.
func (m *member) requests(addon string) []certificatesv1.CertificateSigningRequest {
	m.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(m.t, m.hub.Client.List(m.t.Context(), &list, client.MatchingLabels{names.LabelClusterName: m.name}))
	var found []certificatesv1.CertificateSigningRequest
	for _, request := range list.Items {
		if request.Labels[names.LabelAddonName] == addon {
			found = append(found, request)
		}
	}
	return found
}

// awaitRequests waits until there are so many request objects.
func (m *member) awaitRequests(addon string, count int) []certificatesv1.CertificateSigningRequest {
	m.t.Helper()
	m.eventually(func() bool { return len(m.requests(addon)) == count }, "%d requests of %q", count, addon)
	return m.requests(addon)
}

// decide approves or denies a request.
func (m *member) decide(
	request certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType, reason string,
) {
	m.t.Helper()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "by a test",
	})
	require.NoError(m.t, m.hub.Client.SubResource("approval").Update(m.t.Context(), &request))
}

func (m *member) approve(request certificatesv1.CertificateSigningRequest) {
	m.t.Helper()
	m.decide(request, certificatesv1.CertificateApproved, "Approved")
}

// sign approves and issues a request of a custom signer, for an hour.
func (m *member) sign(request certificatesv1.CertificateSigningRequest) {
	m.t.Helper()
	m.signFor(request, time.Hour)
}

func (m *member) signFor(request certificatesv1.CertificateSigningRequest, lifetime time.Duration) {
	m.t.Helper()
	m.approve(request)
	parsed, err := csr.ParseRequest(request.Spec.Request)
	require.NoError(m.t, err)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(m.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: parsed.Subject, DNSNames: parsed.DNSNames,
		NotBefore: time.Now(), NotAfter: time.Now().Add(lifetime),
	}
	issuer := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, parsed.PublicKey, key)
	require.NoError(m.t, err)
	var latest certificatesv1.CertificateSigningRequest
	require.NoError(m.t, m.hub.Client.Get(m.t.Context(), types.NamespacedName{Name: request.Name}, &latest))
	latest.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(m.t, m.hub.Client.Status().Update(m.t.Context(), &latest))
}

// secretOn returns a Secret of a cluster, nil when there is none.
func (m *member) secretOn(s *site, namespace, name string) *corev1.Secret {
	m.t.Helper()
	var secret corev1.Secret
	err := s.Client.Get(m.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(m.t, err)
	return &secret
}

// secret returns a Secret of the managed cluster, nil when there is none.
func (m *member) secret(namespace, name string) *corev1.Secret {
	m.t.Helper()
	return m.secretOn(m.spoke, namespace, name)
}

// awaitSecretOn waits for a Secret with a key.
func (m *member) awaitSecretOn(s *site, namespace, name, key string) *corev1.Secret {
	m.t.Helper()
	m.eventually(func() bool {
		s := m.secretOn(s, namespace, name)
		return s != nil && len(s.Data[key]) > 0
	}, "key %s in secret %s/%s", key, namespace, name)
	return m.secretOn(s, namespace, name)
}

// awaitSecret waits for a Secret with a certificate.
func (m *member) awaitSecret(namespace, name string) *corev1.Secret {
	m.t.Helper()
	return m.awaitSecretOn(m.spoke, namespace, name, csr.KeyCertificate)
}

// pending returns the Secrets with pending keys of this cluster.
func (m *member) pending() []corev1.Secret {
	m.t.Helper()
	var list corev1.SecretList
	require.NoError(m.t, m.host.Client.List(m.t.Context(), &list, client.InNamespace(m.namespace),
		client.MatchingLabels{names.LabelCredential: names.CredentialPending}))
	return list.Items
}

func (m *member) eventually(done func() bool, message string, args ...any) {
	m.t.Helper()
	suite.Eventually(m.t, suite.True(fmt.Sprintf(message, args...), done))
}

// never requires for a while that something does not happen.
func (m *member) never(happened func() bool, message string) {
	m.t.Helper()
	suite.Consistently(m.t, 2*time.Second, suite.True(message, func() bool { return !happened() }))
}
