package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/test/suite"
)

func heartbeat(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	var l coordinationv1.Lease
	require.NoError(t, plane.Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: lease.ClusterLease}, &l))
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// beats waits for a heartbeat after an instant.
func beats(t *testing.T, after time.Time) {
	t.Helper()
	suite.Eventually(t, func() error {
		ctx := t.Context()
		if last := heartbeat(ctx, t); !last.After(after) {
			return fmt.Errorf("the last heartbeat was at %s", last)
		}
		return nil
	})
}

// silent waits until there was no heartbeat for two periods, the largest jitter included.
func silent(t *testing.T) {
	t.Helper()
	const silence = 2 * leaseSeconds * time.Second * 5 / 4
	suite.Eventually(t, func() error {
		ctx := t.Context()
		if since := time.Since(heartbeat(ctx, t)); since < silence {
			return fmt.Errorf("the last heartbeat is %s ago", since)
		}
		return nil
	})
}

// Shows: registration/heartbeat
func TestTheHeartbeatGoesOn(t *testing.T) {
	for range 3 {
		beats(t, heartbeat(t.Context(), t))
	}
}

func TestAHeartbeatTakesTheHubsUnknownBack(t *testing.T) {
	suite.Eventually(t, func() error {
		ctx := t.Context()
		return setCondition(ctx, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
			"ManagedClusterLeaseUpdateStopped")
	})
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

func TestADeniedClusterFallsSilentAndComesBack(t *testing.T) {
	suite.Eventually(t, func() error {
		ctx := t.Context()
		return setCondition(ctx, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse,
			"HubClusterAdminDenied")
	})
	silent(t)
	last := heartbeat(t.Context(), t)
	suite.Eventually(t, func() error { return accept(t.Context()) })
	beats(t, last)
}

func TestTheHeartbeatSurvivesItsLease(t *testing.T) {
	before := heartbeat(t.Context(), t)
	gone := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: lease.ClusterLease}}
	require.NoError(t, plane.Client.Delete(t.Context(), gone))
	fresh := &coordinationv1.Lease{ObjectMeta: gone.ObjectMeta}
	fresh.ResourceVersion = ""
	require.NoError(t, plane.Client.Create(t.Context(), fresh))
	beats(t, before)
	var renewed coordinationv1.Lease
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(gone), &renewed))
	assert.Nil(t, renewed.Spec.HolderIdentity, "the agent renews, and writes nothing else")
}

// Shows: registration/silent-cluster-unknown
func TestAnAgentThatComesBackTakesTheHubsUnknownBack(t *testing.T) {
	running.Stop()
	last := heartbeat(t.Context(), t)
	require.NoError(t, setCondition(t.Context(), clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped"))
	running.Start()
	beats(t, last)
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

// Shows: registration/heartbeat-after-recreation
func TestAClusterThatIsDeletedAndMadeAnewGetsItsHeartbeatBack(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	for _, object := range rights() {
		if _, keep := object.(*coordinationv1.Lease); keep || object.GetName() == clusterName {
			continue
		}
		require.NoError(t, plane.Client.Delete(t.Context(), object))
	}
	silent(t)
	last := heartbeat(t.Context(), t)
	require.NoError(t, plane.Client.Create(t.Context(),
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}))
	suite.Eventually(t, func() error { return accept(t.Context()) })
	beats(t, last)
	status(t, isCondition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue,
		"ManagedClusterJoined", "Managed cluster joined"))
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

// Shows: registration/lease-duration-followed
func TestAnotherLeaseDurationCountsAtOnce(t *testing.T) {
	setDuration := func(seconds int32) {
		t.Helper()
		suite.Eventually(t, func() error {
			ctx := t.Context()
			var cluster clusterv1.ManagedCluster
			if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
				return err
			}
			cluster.Spec.LeaseDurationSeconds = seconds
			return plane.Client.Update(ctx, &cluster)
		})
	}
	t.Cleanup(func() {
		// Back to what the other tests want.
		suite.Eventually(t, func() error { return accept(context.WithoutCancel(t.Context())) })
	})
	// Longer than anything in this test may take, so what comes after is due to the shorter duration.
	setDuration(600)
	silent(t)
	setDuration(1)
	for range 3 {
		beats(t, heartbeat(t.Context(), t))
	}
}

// A lease that was never renewed, and one that another client renews, are nothing special.
func TestALeaseWithoutRenewTimeIsRenewed(t *testing.T) {
	suite.Eventually(t, func() error {
		ctx := t.Context()
		var l coordinationv1.Lease
		if err := plane.Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: lease.ClusterLease}, &l); err != nil {
			return err
		}
		l.Spec.RenewTime = nil
		return plane.Client.Update(ctx, &l)
	})
	beats(t, time.Time{})
	beats(t, heartbeat(t.Context(), t))
}
