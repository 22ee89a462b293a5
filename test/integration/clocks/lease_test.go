package clocks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// leaseSeconds is how often an agent renews; it counts as silent after five times that.
const (
	leaseSeconds = 60
	grace        = 5 * leaseSeconds * time.Second
)

// accepted makes an accepted cluster, and lets the hub let it in.
func (h *hand) accepted() {
	h.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: h.name,
		// The clock of the API server, which the hub compares that of the agent with, cannot be moved.
		Annotations: map[string]string{"registration.open-cluster-management.io/skip-clock-sync-check": "true"},
	}}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, leaseSeconds
	require.NoError(h, plane.Client.Create(h.Context(), cluster))
	h.settle()
}

// available says as the agent does that the cluster is well.
func (h *hand) available() {
	h.Helper()
	found := h.read()
	meta.SetStatusCondition(&found.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable",
	})
	require.NoError(h, plane.Client.Status().Update(h.Context(), found))
}

// beat renews the Lease of the cluster as its agent does, by the clock of the test.
func (h *hand) beat() {
	h.Helper()
	heartbeat := h.lease()
	now := metav1.NewMicroTime(h.Clock.Now())
	heartbeat.Spec.RenewTime = &now
	require.NoError(h, plane.Client.Update(h.Context(), heartbeat))
}

func (h *hand) lease() *coordinationv1.Lease {
	h.Helper()
	var found coordinationv1.Lease
	key := types.NamespacedName{Namespace: h.name, Name: names.LeaseCluster}
	require.NoError(h, plane.Client.Get(h.Context(), key, &found))
	return &found
}

// condition is the condition Available of the cluster.
func (h *hand) condition() metav1.Condition {
	h.Helper()
	found := meta.FindStatusCondition(h.read().Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	require.NotNil(h, found)
	return *found
}

func (h *hand) unreachable() bool {
	h.Helper()
	for _, taint := range h.read().Spec.Taints {
		if taint.Key == clusterv1.ManagedClusterTaintUnreachable {
			return true
		}
	}
	return false
}

// Shows: registration/heartbeat
func TestAHeartbeatCostsTheHubNoWrite(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.accepted()
	h.beat()
	h.available()
	h.settle()
	writes, version := h.Client.Writes(), h.read().ResourceVersion
	for range 20 {
		h.Step(leaseSeconds * time.Second)
		h.beat()
		assert.Equal(t, grace, h.settle(), "it looks again when the lease is over")
	}
	assert.Equal(t, writes, h.Client.Writes())
	assert.Equal(t, version, h.read().ResourceVersion, "nobody wrote the cluster")
	assert.Equal(t, metav1.ConditionTrue, h.condition().Status)
}

// TestAClusterIsUnknownWhenItsGraceIsOver follows a silent cluster to the second, and back.
func TestAClusterIsUnknownWhenItsGraceIsOver(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.accepted()
	h.beat()
	h.available()
	assert.Equal(t, grace, h.settle())

	h.Step(grace - time.Second)
	assert.Equal(t, time.Second, h.settle())
	assert.Equal(t, metav1.ConditionTrue, h.condition().Status, "a second before the end of its grace")
	assert.Empty(t, h.events)

	h.Step(time.Second)
	h.settle()
	assert.Equal(t, metav1.ConditionUnknown, h.condition().Status)
	assert.Equal(t, "ManagedClusterLeaseUpdateStopped", h.condition().Reason)
	assert.Equal(t, h.Clock.Now().UTC(), h.condition().LastTransitionTime.UTC())
	assert.True(t, h.unreachable())
	assert.Len(t, h.events, 1)

	h.Step(24 * time.Hour)
	writes := h.Client.Writes()
	h.settle()
	assert.Equal(t, writes, h.Client.Writes(), "there is nothing more to say")
	assert.Len(t, h.events, 1)

	// The agent is back.
	h.beat()
	h.available()
	h.settle()
	assert.False(t, h.unreachable())
	for range 3 {
		h.Step(grace - time.Second)
		h.beat()
		h.settle()
		assert.Equal(t, metav1.ConditionTrue, h.condition().Status, "while it renews its lease in time")
	}
	h.Step(grace)
	h.settle()
	assert.Equal(t, metav1.ConditionUnknown, h.condition().Status, "its next silence counts again")
	assert.Len(t, h.events, 2)
}

// TestAnAddOnIsUnknownWithItsCluster has an add-on whose agent answered just before the cluster fell silent.
func TestAnAddOnIsUnknownWithItsCluster(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.accepted()
	h.beat()
	h.available()
	require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "early"},
	}))
	h.settle()
	addOn := func() *metav1.Condition {
		found, err := plane.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: h.name, Name: "early"})
		require.NoError(t, err)
		return meta.FindStatusCondition(found.Status.Conditions, "Available")
	}
	assert.Nil(t, addOn())
	h.Step(grace)
	h.settle()
	require.NotNil(t, addOn())
	assert.Equal(t, metav1.ConditionUnknown, addOn().Status)
	assert.Equal(t, "Registration agent stopped updating its lease.", addOn().Message)
}

// TestAShorterLeaseCountsAtOnce changes the duration of the lease while the agent is silent.
func TestAShorterLeaseCountsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.accepted()
	h.beat()
	h.available()
	h.settle()
	h.Step(10 * time.Second)
	found := h.read()
	found.Spec.LeaseDurationSeconds = 3
	require.NoError(t, plane.Client.Update(t.Context(), found))
	assert.Equal(t, 5*time.Second, h.settle(), "15 seconds after the last renewal")
	h.Step(5 * time.Second)
	h.settle()
	assert.Equal(t, metav1.ConditionUnknown, h.condition().Status)
}
