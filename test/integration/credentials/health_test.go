package credentials_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/test/suite"
)

func (m *member) renew(at time.Time) {
	m.t.Helper()
	renewed := metav1.NewMicroTime(at)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.addonNamespace, Name: hello}}
	err := m.spoke.Client.Get(m.t.Context(), client.ObjectKeyFromObject(lease), lease)
	lease.Spec.RenewTime = &renewed
	if apierrors.IsNotFound(err) {
		require.NoError(m.t, m.spoke.Client.Create(m.t.Context(), lease))
		return
	}
	require.NoError(m.t, err)
	require.NoError(m.t, m.spoke.Client.Update(m.t.Context(), lease))
}

// Shows: registration/lease-stale, registration/lease-fresh, registration/lease-deleted
func TestTheLeaseOfAnAddonTellsItsHealth(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-health")
	m.createNamespace(m.addonNamespace)
	m.leaseGrace = 2 * time.Second
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)

	told := m.awaitCondition("Available", metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
	assert.Equal(t, "The status of hello add-on is unknown. "+
		"There is no lease "+m.addonNamespace+"/hello: no agent of the add-on has renewed it yet.", told.Message)
	m.eventually(func() bool { // Its agent renews it until that shows.
		m.renew(time.Now())
		told = *meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		return told.Status == metav1.ConditionTrue && told.Reason == "ManagedClusterAddOnLeaseUpdated"
	}, "the lease is fresh")
	assert.Equal(t, "hello add-on is available.", told.Message)
	told = m.awaitCondition("Available", metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped")
	assert.Contains(t, told.Message, "hello add-on is not available. Its lease "+m.addonNamespace+"/hello was last renewed at ")
	m.renew(time.Now().Add(time.Hour))
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.addonNamespace, Name: hello}}
	require.NoError(t, m.spoke.Client.Delete(t.Context(), lease))
	m.awaitCondition("Available", metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
}

// Shows: registration/cluster-silent
func TestWhileTheHubHasLostSightOfTheClusterItSaysHowAddonsAre(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-unknown")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)
	m.renew(time.Now())
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")

	m.setCluster(metav1.ConditionUnknown)
	lost := func() bool {
		available := meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		return available.Reason == "ManagedClusterLeaseUpdateStopped"
	}
	m.eventually(func() bool { // until the agent has heard of it, it may still write its own
		m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{
				Type: "Available", Status: metav1.ConditionUnknown, Reason: "ManagedClusterLeaseUpdateStopped",
			})
		})
		return lost() && m.addonRests()
	}, "the word of the hub stands")
	m.renew(time.Now())
	m.never(func() bool { return !lost() }, "the word of the hub stays")

	m.setCluster(metav1.ConditionTrue)
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
}

func (m *member) setCluster(available metav1.ConditionStatus) {
	m.t.Helper()
	// The agent writes this status too.
	require.NoError(m.t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var mc clusterv1.ManagedCluster
		if err := m.spoke.Client.Get(m.t.Context(), types.NamespacedName{Name: m.name}, &mc); err != nil {
			return err
		}
		meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
			Type: "ManagedClusterConditionAvailable", Status: available, Reason: "Test",
		})
		return m.spoke.Client.Status().Update(m.t.Context(), &mc)
	}))
}

func TestAnAgentAtRestSendsNothing(t *testing.T) {
	t.Parallel()
	m := newMember(t, "addon-rests")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace, kubeClient("user"), customSigner(ownSigner))
	for _, request := range m.awaitRequests(hello, 2) {
		if request.Spec.SignerName != ownSigner { // the other one is left waiting
			m.approve(request)
		}
	}
	m.awaitSecret(m.addonNamespace, helloKube)
	m.renew(time.Now())
	m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
	m.eventually(func() bool { // It is told only after a while.
		return slices.ContainsFunc(m.addon().Status.Conditions, func(c metav1.Condition) bool {
			return c.Reason == issue.ReasonRequestPending
		})
	}, "that a request waits")
	m.awaitQuiet()

	hub, spoke := m.hubRequests.Load(), m.spokeRequests.Load()
	for range 20 {
		m.renew(time.Now())
	}
	m.change(func(s *addonv1beta1.ManagedClusterAddOnStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "Progressing", Status: "True", Reason: "Theirs"})
	})
	m.never(func() bool {
		return m.hubRequests.Load() != hub || m.spokeRequests.Load() != spoke
	}, "leases are renewed and others write, and the agent sends nothing")
}

// awaitQuiet waits until the agent has sent nothing for a while.
func (m *member) awaitQuiet() {
	m.t.Helper()
	suite.Quiet(m.t, time.Second, func() int64 { return m.hubRequests.Load() + m.spokeRequests.Load() })
}

// addonRests reports whether nobody writes the add-on for a moment.
func (m *member) addonRests() bool {
	version := m.addon().ResourceVersion
	for range 10 {
		if m.addon().ResourceVersion != version {
			return false
		}
	}
	return true
}
