package credentials_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// quiet waits until the agent has answered what happened last, and fails if it then sends more than a few requests
// while nothing happens.
func (m *member) quiet(most int64) {
	m.t.Helper()
	suite.Quiet(m.t, 10*suite.Tick, func() int64 { return m.hubRequests.Load() + m.spokeRequests.Load() })
	m.hubRequests.Store(0)
	m.spokeRequests.Store(0)
	m.never(func() bool { return m.hubRequests.Load()+m.spokeRequests.Load() > most }, "the agent waits without requests")
}

func TestARenamedClusterTakesOverItsCredentials(t *testing.T) {
	t.Parallel()
	was, is := newMember(t, "renamed"), newMember(t, "renamed")
	is.namespace, is.addonNamespace = was.namespace, was.addonNamespace
	was.createNamespace(was.addonNamespace)
	stop := was.serve(was.accepted())
	was.enable(addonv1beta1.HealthCheckModeCustomized, was.addonNamespace, kubeClient("user"))
	was.approve(was.awaitRequests(hello, 1)[0])
	was.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	before := was.secret(was.addonNamespace, helloKube)
	stop()

	is.serve(is.accepted())
	is.enable(addonv1beta1.HealthCheckModeCustomized, is.addonNamespace, kubeClient("other"))
	is.approve(is.awaitRequests(hello, 1)[0])
	is.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	after := is.secret(is.addonNamespace, helloKube)
	assert.Equal(t, before.UID, after.UID, "the Secret stays the same object")
	assert.Equal(t, is.name, after.Labels[names.LabelClusterName])
	assert.Equal(t, is.name, string(after.Data["cluster-name"]))
	assert.Equal(t, "other", is.who(after).Username)
	assert.Len(t, is.requests(hello), 1)
	is.quiet(2)
}

func TestTwoAgentsThatShareANamespaceOfAddonsSayWhoseTheSecretIs(t *testing.T) {
	t.Parallel()
	one, two := newMember(t, "sharing"), newMember(t, "sharing")
	two.addonNamespace = one.addonNamespace
	one.createNamespace(one.addonNamespace)
	for _, m := range []*member{one, two} {
		m.serve(m.accepted())
		m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, kubeClient("user"))
		if m == one {
			m.approve(m.awaitRequests(hello, 1)[0])
			m.awaitSecret(m.addonNamespace, helloKube)
		}
	}
	told := two.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
	assert.Contains(t, told.Message, "secret "+one.addonNamespace+"/"+helloKube+" belongs to add-on hello of cluster "+
		one.name+": give one of the two add-ons another namespace, or delete the secret if the agent in namespace "+
		one.namespace+" is no more")
	two.quiet(2)
	assert.Empty(t, two.requests(hello), "a certificate that cannot be stored is not asked for")
	assert.Equal(t, one.name, one.secret(one.addonNamespace, helloKube).Labels[names.LabelClusterName])

	// The other agent leaves the add-on, and its Secret goes with it.
	one.removeAddon()
	two.approve(two.awaitRequests(hello, 1)[0])
	two.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
	require.Equal(t, two.name, two.secret(two.addonNamespace, helloKube).Labels[names.LabelClusterName])
}
