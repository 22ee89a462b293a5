package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/lease"
)

// eventually waits until holds returns nil, and fails with the last reason why it did not.
func eventually(t *testing.T, holds func(ctx context.Context) error) {
	t.Helper()
	require.NoError(t, waitFor(t.Context(), holds))
}

// status waits until the status of the ManagedCluster is as wanted.
func status(t *testing.T, wanted func(s clusterv1.ManagedClusterStatus) error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := shared.admin.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
			return err
		}
		return wanted(cluster.Status)
	})
}

func isCondition(kind string, want metav1.ConditionStatus, reason, message string) func(clusterv1.ManagedClusterStatus) error {
	return func(s clusterv1.ManagedClusterStatus) error {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.Status != want || c.Reason != reason || c.Message != message {
			return fmt.Errorf("%s is %+v", kind, c)
		}
		return nil
	}
}

func heartbeat(ctx context.Context, t *testing.T) time.Time {
	t.Helper()
	var l coordinationv1.Lease
	require.NoError(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: lease.ClusterLease}, &l))
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// beats waits for a heartbeat after an instant.
func beats(t *testing.T, after time.Time) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if last := heartbeat(ctx, t); !last.After(after) {
			return fmt.Errorf("the last heartbeat was at %s", last)
		}
		return nil
	})
}

func TestAnAcceptedClusterJoinsAndIsAvailable(t *testing.T) {
	status(t, isCondition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue,
		"ManagedClusterJoined", "Managed cluster joined"))
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
	version, err := shared.kube.Discovery().ServerVersion()
	require.NoError(t, err)
	status(t, func(s clusterv1.ManagedClusterStatus) error {
		if s.Version.Kubernetes != version.GitVersion {
			return fmt.Errorf("version is %q", s.Version.Kubernetes)
		}
		return nil
	})
	now := time.Now()
	beats(t, now)
	beats(t, heartbeat(t.Context(), t))
}

func newNode(t *testing.T, name string, list corev1.ResourceList) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, shared.admin.Create(t.Context(), node))
	t.Cleanup(func() {
		_ = shared.admin.Delete(context.WithoutCancel(t.Context()), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	// A patch of these fields alone: the controllers write nodes too.
	before := node.DeepCopy()
	node.Status.Capacity, node.Status.Allocatable = list, list
	require.NoError(t, shared.admin.Status().Patch(t.Context(), node, client.MergeFrom(before)))
	return node
}

func sums(capacity, allocatable map[string]string) func(clusterv1.ManagedClusterStatus) error {
	return func(s clusterv1.ManagedClusterStatus) error {
		for _, part := range []struct {
			have clusterv1.ResourceList
			want map[string]string
		}{{s.Capacity, capacity}, {s.Allocatable, allocatable}} {
			have := map[string]string{}
			for name, quantity := range part.have {
				have[string(name)] = quantity.String()
			}
			if !maps.Equal(have, part.want) {
				return fmt.Errorf("have %v, want %v", have, part.want)
			}
		}
		return nil
	}
}

func TestNodesAddUp(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	newNode(t, "n1", list("4", "8Gi"))
	gpu := list("2", "4Gi")
	gpu["nvidia.com/gpu"] = resource.MustParse("1")
	second := newNode(t, "n2", gpu)
	both := map[string]string{"cpu": "6", "memory": "12Gi", "nvidia.com/gpu": "1"}
	status(t, sums(both, both))

	before := second.DeepCopy()
	second.Spec.Unschedulable = true
	require.NoError(t, shared.admin.Patch(t.Context(), second, client.MergeFrom(before)))
	first := map[string]string{"cpu": "4", "memory": "8Gi"}
	status(t, sums(both, first))

	require.NoError(t, shared.admin.Delete(t.Context(), second))
	status(t, sums(first, first))
}

func TestClaimsFollowTheClusterClaims(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"zone.example.com": nil, "id.k8s.io": nil, "secret.example.com": {"open-cluster-management.io/spoke-only": ""},
	} {
		claim := &clusterv1alpha1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       clusterv1alpha1.ClusterClaimSpec{Value: "v-" + name},
		}
		require.NoError(t, shared.admin.Create(t.Context(), claim))
		t.Cleanup(func() { _ = shared.admin.Delete(context.WithoutCancel(t.Context()), claim) })
	}
	claims := func(names ...string) func(s clusterv1.ManagedClusterStatus) error {
		return func(s clusterv1.ManagedClusterStatus) error {
			var have []string
			for _, claim := range s.ClusterClaims {
				have = append(have, claim.Name)
			}
			if fmt.Sprint(have) != fmt.Sprint(names) {
				return fmt.Errorf("claims are %v", have)
			}
			return nil
		}
	}
	status(t, claims("id.k8s.io", "zone.example.com"))
	require.NoError(t, shared.admin.Delete(t.Context(),
		&clusterv1alpha1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "zone.example.com"}}))
	status(t, claims("id.k8s.io"))
}

func TestAHeartbeatTakesTheHubsUnknownBack(t *testing.T) {
	eventually(t, func(ctx context.Context) error {
		return setCondition(ctx, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
			"ManagedClusterLeaseUpdateStopped")
	})
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

func TestADeniedClusterFallsSilentAndComesBack(t *testing.T) {
	eventually(t, func(ctx context.Context) error {
		return setCondition(ctx, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse,
			"HubClusterAdminDenied")
	})
	// Silence is two periods without a heartbeat, the largest jitter included.
	const silence = 2 * leaseSeconds * time.Second * 5 / 4
	eventually(t, func(ctx context.Context) error {
		if since := time.Since(heartbeat(ctx, t)); since < silence {
			return fmt.Errorf("the last heartbeat is %s ago", since)
		}
		return nil
	})
	silent := heartbeat(t.Context(), t)
	eventually(t, accept)
	beats(t, silent)
}

func TestTheHeartbeatSurvivesItsLease(t *testing.T) {
	before := heartbeat(t.Context(), t)
	gone := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: lease.ClusterLease}}
	require.NoError(t, shared.admin.Delete(t.Context(), gone))
	fresh := &coordinationv1.Lease{ObjectMeta: gone.ObjectMeta}
	fresh.ResourceVersion = ""
	require.NoError(t, shared.admin.Create(t.Context(), fresh))
	beats(t, before)
	var renewed coordinationv1.Lease
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(gone), &renewed))
	assert.Nil(t, renewed.Spec.HolderIdentity, "the agent renews, and writes nothing else")
}
