package hubcluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/silent-cluster-unknown, registration/lease-duration-followed, registration/taints
func TestASilentClusterIsUnknownAndTaintedUntilItsAgentIsBack(t *testing.T) {
	t.Parallel()
	const name = "restarted"
	createQuick(t, name, 60)
	expectTaint(t, name, clusterv1.ManagedClusterTaintUnreachable)
	agent := agentClient(t, name)
	stop := renew(t, name)
	recovers(t, agent, name)
	setAvailable(t, agent, name, metav1.ConditionFalse)
	expectTaint(t, name, clusterv1.ManagedClusterTaintUnavailable)
	recovers(t, agent, name)

	patch(t, getCluster(t, name), `{"spec":{"taints":[{"key":"example.com/mine","value":"v","effect":"PreferNoSelect"}]}}`)
	stop()
	patch(t, getCluster(t, name), `{"spec":{"leaseDurationSeconds":1}}`)
	expectCondition(t, name, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped")
	expectTaint(t, name, clusterv1.ManagedClusterTaintUnreachable)
	taints := getCluster(t, name).Spec.Taints
	require.Len(t, taints, 2)
	assert.Equal(t, "example.com/mine", taints[0].Key)
	assert.WithinDuration(t, time.Now(), taints[1].TimeAdded.Time, suite.Timeout)
	expectSilenceTold(t, name, 1)

	stop = renew(t, name)
	defer stop()
	recovers(t, agent, name)
	assert.Len(t, getCluster(t, name).Spec.Taints, 1, "the taint of somebody else stays")
	suite.Consistently(t, 6*time.Second, func() error {
		return equal(true, meta.IsStatusConditionTrue(getCluster(t, name).Status.Conditions,
			clusterv1.ManagedClusterConditionAvailable))
	})
	expectSilenceTold(t, name, 1)
}

// Shows: registration/heartbeat-after-recreation
func TestAClusterThatIsCreatedAgainStartsAnew(t *testing.T) {
	t.Parallel()
	const name = "again"
	createQuick(t, name, 1)
	agent := agentClient(t, name)
	stop := renew(t, name)
	defer stop()
	setAvailable(t, agent, name, metav1.ConditionTrue)
	before, heartbeat := getCluster(t, name).UID, getLease(t, name).UID

	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
	gone(t, &coordinationv1.Lease{}, leaseKey(name))
	createQuick(t, name, 1)
	have := getCluster(t, name)
	assert.NotEqual(t, before, have.UID)
	assert.NotEqual(t, heartbeat, getLease(t, name).UID)

	// The agent that ran on goes on as soon as it may again.
	recovers(t, agent, name)
	suite.Consistently(t, 6*time.Second, func() error {
		return equal(true, meta.IsStatusConditionTrue(getCluster(t, name).Status.Conditions,
			clusterv1.ManagedClusterConditionAvailable))
	})
}

// Shows: registration/clock-synced
func TestTheClockOfAnAgentIsCompared(t *testing.T) {
	t.Parallel()
	const name = "clock"
	createQuick(t, name, 60)
	beat(t, name, 0)
	expectClock(t, name, metav1.ConditionTrue, "ManagedClusterClockSynced")
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		beat(t, name, skew)
		expectClock(t, name, metav1.ConditionFalse, "ManagedClusterClockOutOfSync")
		version := suite.Quiet(t, time.Second, func() string { return getCluster(t, name).ResourceVersion })
		if skew > 0 {
			beat(t, name, skew+time.Minute)
			suite.Consistently(t, time.Second, func() error { return equal(version, getCluster(t, name).ResourceVersion) })
		}
		beat(t, name, 0)
		expectClock(t, name, metav1.ConditionTrue, "ManagedClusterClockSynced")
	}

	beat(t, name, time.Hour)
	expectClock(t, name, metav1.ConditionFalse, "ManagedClusterClockOutOfSync")
	patch(t, getCluster(t, name),
		`{"metadata":{"annotations":{"registration.open-cluster-management.io/skip-clock-sync-check":"true"}}}`)
	expectClock(t, name, metav1.ConditionTrue, "ManagedClusterClockSynced")
	patch(t, getCluster(t, name),
		`{"metadata":{"annotations":{"registration.open-cluster-management.io/skip-clock-sync-check":null}}}`)
	expectClock(t, name, metav1.ConditionFalse, "ManagedClusterClockOutOfSync")
}

func TestAnAgentThatStoppedHasNoWrongClock(t *testing.T) {
	t.Parallel()
	const name = "stopped"
	createQuick(t, name, 1)
	beat(t, name, 0)
	expectCondition(t, name, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped")
	suite.Consistently(t, time.Second, func() error {
		return equal(true, meta.IsStatusConditionTrue(getCluster(t, name).Status.Conditions,
			clusterv1.ManagedClusterConditionClockSynced))
	})
}

func TestALeaseThatLosesItsRenewTimeHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	const name, other = "wiped", "wiped-other"
	createQuick(t, name, 60)
	beat(t, name, 0)
	expectClock(t, name, metav1.ConditionTrue, "ManagedClusterClockSynced")
	wiped := getLease(t, name)
	wiped.Spec.RenewTime = nil
	require.NoError(t, agentClient(t, name).Update(t.Context(), wiped))
	expectCondition(t, name, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped")
	createQuick(t, other, 60)
	beat(t, other, 0)
	expectClock(t, other, metav1.ConditionTrue, "ManagedClusterClockSynced")
}

// createQuick creates an accepted cluster with a lease duration and waits until its agent may work.
func createQuick(t *testing.T, name string, seconds int32) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, seconds
	eventuallyCreate(t, plane.Client, cluster)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	suite.Eventually(t, func() error { return plane.Client.Get(t.Context(), leaseKey(name), &coordinationv1.Lease{}) })
}

// setAvailable writes the health of a cluster as its agent does.
func setAvailable(t *testing.T, c client.Client, name string, status metav1.ConditionStatus) {
	t.Helper()
	suite.Eventually(t, func() error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			cluster := getCluster(t, name)
			meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "ManagedClusterAvailable",
			})
			return c.Status().Update(t.Context(), cluster)
		})
	})
}

// recovers says that a cluster is available until its taint is gone, as its agent does: a hub manager that has not seen
// the heartbeat yet overrules it.
func recovers(t *testing.T, c client.Client, name string) {
	t.Helper()
	suite.Eventually(t, func() error {
		if !meta.IsStatusConditionTrue(getCluster(t, name).Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			setAvailable(t, c, name, metav1.ConditionTrue)
		}
		return equal(0, len(unreachable(t, name)))
	})
}

// renew keeps the heartbeat of a cluster fresh, as its agent does, until the returned function is called. It returns
// after the first beat: an agent whose lease is stale is not believed when it says that all is well.
func renew(t *testing.T, cluster string) func() {
	t.Helper()
	cfg, err := plane.User(csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	require.NoError(t, err)
	clients, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	renewer := lease.Renewer{
		Leases: clients.CoordinationV1().Leases(cluster), Namespace: cluster, Name: lease.ClusterLease, Duration: time.Second,
	}
	before := getLease(t, cluster).ResourceVersion
	go func() {
		defer close(done)
		_ = renewer.Run(ctx)
	}()
	suite.Eventually(t, func() error { return equal(true, getLease(t, cluster).ResourceVersion != before) })
	return func() { cancel(); <-done }
}

// beat renews the heartbeat of a cluster once, by a clock that is wrong.
func beat(t *testing.T, cluster string, skew time.Duration) {
	t.Helper()
	agent := agentClient(t, cluster)
	suite.Eventually(t, func() error {
		heartbeat := getLease(t, cluster)
		at := metav1.NewMicroTime(time.Now().Add(skew))
		heartbeat.Spec.RenewTime = &at
		return agent.Update(t.Context(), heartbeat)
	})
}

func expectClock(t *testing.T, cluster string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	expectCondition(t, cluster, clusterv1.ManagedClusterConditionClockSynced, status, reason)
}

// expectTaint waits until a cluster has exactly this one of the taints that follow its health.
func expectTaint(t *testing.T, cluster, key string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return equal(fmt.Sprint([]string{key + ":NoSelect"}), fmt.Sprint(unreachable(t, cluster)))
	})
}

// unreachable returns the taints of a cluster that say that it is not available.
func unreachable(t *testing.T, cluster string) []string {
	t.Helper()
	var have []string
	for _, taint := range getCluster(t, cluster).Spec.Taints {
		switch taint.Key {
		case clusterv1.ManagedClusterTaintUnavailable, clusterv1.ManagedClusterTaintUnreachable:
			have = append(have, taint.Key+":"+string(taint.Effect))
		}
	}
	return have
}

// expectSilenceTold waits for the Events that say that a cluster fell silent, each for another time.
func expectSilenceTold(t *testing.T, cluster string, times int) {
	t.Helper()
	suite.Eventually(t, func() error {
		var list eventsv1.EventList
		err := plane.Client.List(t.Context(), &list, client.InNamespace(cluster))
		told := 0
		for _, e := range list.Items {
			if e.Reason == "AvailableUnknown" && e.Type == "Warning" && e.Regarding.Name == cluster {
				told++
			}
		}
		return errors.Join(err, equal(times, told))
	})
}
