package credentials_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// moveTo names the cluster that hosts the add-on, or none.
func (m *member) moveTo(hosting string) {
	m.t.Helper()
	m.eventually(func() bool {
		before := m.addon()
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, names.AnnotationHostingCluster, hosting)
		if hosting == "" {
			delete(after.Annotations, names.AnnotationHostingCluster)
		}
		_, err := m.addons().PatchAddOn(m.t.Context(), before, after)
		if err != nil {
			require.True(m.t, apierrors.IsConflict(err), "%v", err)
		}
		return err == nil
	}, "a write of the add-on")
}

// renewOn renews the lease of the add-on on a cluster.
func (m *member) renewOn(s *site, at time.Time) {
	m.t.Helper()
	renewed := metav1.NewMicroTime(at)
	require.NoError(m.t, s.Client.Create(m.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.addonNamespace, Name: hello},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	}))
}

// Shows: registration/default-mode, registration/hosted-mode
func TestCredentialsAndLeaseOfAnAddonAreWhereItsAgentRuns(t *testing.T) {
	t.Parallel()
	hub, host := home, second
	m := newMemberOn(t, "hosted", hub, hub, host)
	m.createNamespace(m.addonNamespace)
	host.createNamespace(t, m.addonNamespace)
	config := m.accepted()
	m.serve(config)
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace, kubeClient("user"))

	// Default mode: on the managed cluster, though the agent that serves it runs elsewhere.
	m.approve(m.awaitRequests(hello, 1)[0])
	first := m.awaitSecret(m.addonNamespace, helloKube)
	assert.Equal(t, "user", m.who(first).Username)
	assert.Nil(t, m.secretOn(host, m.addonNamespace, helloKube))
	m.renewOn(hub, time.Now())
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")

	// Hosted mode: the old credential stays until the new one is on the other side.
	m.moveTo("host")
	told := m.awaitCondition("Available", metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
	assert.Contains(t, told.Message, `The status of hello add-on is unknown. No lease found on hosting cluster "host"; `+
		`verify it matches the cluster where this managed cluster's klusterlet actually runs. There is no lease `+m.addonNamespace+`/hello.`)
	requests := m.awaitRequests(hello, 2)
	assert.NotNil(t, m.secret(m.addonNamespace, helloKube))
	m.approveAll(requests)
	second := m.awaitSecretOn(host, m.addonNamespace, helloKube, csr.KeyCertificate)
	assert.Equal(t, "user", m.who(second).Username)
	m.awaitGone(m.addonNamespace, helloKube)
	m.renewOn(host, time.Now())
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")

	// And back.
	m.moveTo("")
	requests = m.awaitRequests(hello, 3)
	assert.NotNil(t, m.secretOn(host, m.addonNamespace, helloKube))
	m.approveAll(requests)
	m.awaitSecret(m.addonNamespace, helloKube)
	m.eventually(func() bool { return m.secretOn(host, m.addonNamespace, helloKube) == nil }, "the hosted one goes")

	// Hosted again, and gone while the agent is hosted.
	m.moveTo("host")
	m.approveAll(m.awaitRequests(hello, 4))
	m.awaitSecretOn(host, m.addonNamespace, helloKube, csr.KeyCertificate)
	m.removeAddon()
	m.eventually(func() bool { return m.secretOn(host, m.addonNamespace, helloKube) == nil }, "nothing stays on the host")
	m.awaitGone(m.addonNamespace, helloKube)
}

func TestAHostedAddonTakesTokensToo(t *testing.T) {
	hub, host := home, second
	runHubTokens(t, hub)
	m := newMemberOn(t, "hosted-token", hub, hub, host)
	m.driver = token.Driver
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
	m.awaitToken(m.addonNamespace)

	m.moveTo("host")
	m.eventually(func() bool {
		for _, c := range m.addon().Status.Conditions {
			if c.Type == "TokenRefreshed" && c.Status == metav1.ConditionFalse {
				return true
			}
		}
		return false
	}, "the missing namespace on the host is told")
	assert.NotNil(t, m.secret(m.addonNamespace, helloKube), "what is in use stays until its successor is there")
	host.createNamespace(t, m.addonNamespace)
	hosted := m.awaitSecretOn(host, m.addonNamespace, helloKube, token.KeyToken)
	assert.Equal(t, token.User(m.name, hello), m.who(hosted).Username)
	m.awaitGone(m.addonNamespace, helloKube)
}

func TestAgentsOfTwoClustersOnOneHostLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	hub, host := home, second
	one := newMemberOn(t, "neighbour", hub, hub, host)
	two := newMemberOn(t, "neighbour", hub, hub, host)
	two.addonNamespace = one.addonNamespace
	host.createNamespace(t, one.addonNamespace)
	for _, m := range []*member{one, two} {
		m.annotations = map[string]string{names.AnnotationHostingCluster: "host"}
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		if m == one {
			m.approve(m.awaitRequests(hello, 1)[0])
			m.awaitSecretOn(host, m.addonNamespace, helloKube, csr.KeyCertificate)
		}
	}
	told := two.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	assert.Contains(t, told.Message, "secret "+one.addonNamespace+"/hello-hub-kubeconfig belongs to add-on hello of cluster "+
		one.name+": give one of the two add-ons another namespace")
	assert.Empty(t, two.requests(hello), "a certificate that cannot be stored is not asked for")
	two.removeAddon()
	one.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	assert.NotNil(t, two.secretOn(host, one.addonNamespace, helloKube))
}
