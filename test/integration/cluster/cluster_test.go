package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// status waits until the status of the ManagedCluster is as wanted.
func status(t *testing.T, wanted func(s clusterv1.ManagedClusterStatus) error) {
	t.Helper()
	suite.Eventually(t, func() error {
		ctx := t.Context()
		var cluster clusterv1.ManagedCluster
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
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

func TestAnAcceptedClusterJoinsAndIsAvailable(t *testing.T) {
	status(t, isCondition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue,
		"ManagedClusterJoined", "Managed cluster joined"))
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
	clients, err := kubernetes.NewForConfig(plane.Admin())
	require.NoError(t, err)
	version, err := clients.Discovery().ServerVersion()
	require.NoError(t, err)
	status(t, func(s clusterv1.ManagedClusterStatus) error {
		if s.Version.Kubernetes != version.GitVersion {
			return fmt.Errorf("version is %q", s.Version.Kubernetes)
		}
		return nil
	})
	expectEvent(t, corev1.EventTypeNormal, "Available")
}

// expectEvent waits for an Event of the agent about the cluster that was told after the test began.
func expectEvent(t *testing.T, kind, reason string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := plane.Client.List(t.Context(), &list, client.InNamespace(clusterName)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.ReportingController == "klusterlet-agent" && e.Reason == reason && e.Type == kind &&
				e.Regarding.Kind == "ManagedCluster" && e.Regarding.Name == clusterName {
				return nil
			}
		}
		return fmt.Errorf("no Event %s %s among %d", kind, reason, len(list.Items))
	})
}

// TestAnAPIServerThatIsNotWellMakesTheClusterUnavailable takes as long as OCM wants /livez to fail.
func TestAnAPIServerThatIsNotWellMakesTheClusterUnavailable(t *testing.T) {
	sick.Store(true)
	t.Cleanup(func() { sick.Store(false) })
	// Nobody probes a server that gives no reason to; a request that fails is one.
	disturb.Store(true)
	manage(t, entry("set", unique("managed-probe")))
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionFalse,
		"ManagedClusterKubeAPIServerUnavailable", "The kube-apiserver is not ok, status code: 500, etcd is not well"))
	expectEvent(t, corev1.EventTypeWarning, "Unavailable")
	beats(t, heartbeat(t.Context(), t))
	sick.Store(false)
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

func TestWhileTheClocksDisagreeTheAgentBeatsAndSaysNothing(t *testing.T) {
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		suite.Eventually(t, func() error { return setCondition(t.Context(), kind, status, reason) })
	}
	set(clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionFalse, "ManagedClusterClockOutOfSync")
	set(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped")
	// A heartbeat takes the hub's Unknown back, at other times; two of them leave the agent time to err.
	beats(t, time.Now())
	beats(t, heartbeat(t.Context(), t))
	var cluster clusterv1.ManagedCluster
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: clusterName}, &cluster))
	assert.True(t, meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions,
		clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown))
	set(clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionTrue, "ManagedClusterClockSynced")
	status(t, isCondition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue,
		"ManagedClusterAvailable", "Managed cluster is available"))
}

func newNode(t *testing.T, name string, list corev1.ResourceList) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, plane.Client.Create(t.Context(), node))
	t.Cleanup(func() {
		_ = plane.Client.Delete(context.WithoutCancel(t.Context()), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	// A patch of these fields alone: the controllers write nodes too.
	before := node.DeepCopy()
	node.Status.Capacity, node.Status.Allocatable = list, list
	require.NoError(t, plane.Client.Status().Patch(t.Context(), node, client.MergeFrom(before)))
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

// Shows: registration/node-sums
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
	require.NoError(t, plane.Client.Patch(t.Context(), second, client.MergeFrom(before)))
	first := map[string]string{"cpu": "4", "memory": "8Gi"}
	status(t, sums(both, first))

	require.NoError(t, plane.Client.Delete(t.Context(), second))
	status(t, sums(first, first))
}

func TestResourcesOfAnotherWriterStay(t *testing.T) {
	newNode(t, "n1", corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")})
	own := map[string]string{"cpu": "4", "nvidia.com/gpu": "1"}
	status(t, sums(own, own))
	suite.Eventually(t, func() error {
		ctx := t.Context()
		patch := []byte(`{"status":{"capacity":{"core_worker":"8"},"allocatable":{"core_worker":"7"}}}`)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
		return plane.Client.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
	})
	t.Cleanup(func() {
		patch := []byte(`{"status":{"capacity":{"core_worker":null},"allocatable":{"core_worker":null}}}`)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
		assert.NoError(t, plane.Client.Status().Patch(context.WithoutCancel(t.Context()), cluster,
			client.RawPatch(types.MergePatchType, patch)))
	})
	// Our own resources follow the nodes, and those of the other writer are there all the time.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	patch := []byte(`{"status":{"capacity":{"cpu":"6","nvidia.com/gpu":null},"allocatable":{"cpu":"6","nvidia.com/gpu":null}}}`)
	require.NoError(t, plane.Client.Status().Patch(t.Context(), node, client.RawPatch(types.MergePatchType, patch)))
	status(t, sums(map[string]string{"cpu": "6", "core_worker": "8"}, map[string]string{"cpu": "6", "core_worker": "7"}))
	before := &clusterv1.ManagedCluster{}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: clusterName}, before))
	beats(t, heartbeat(t.Context(), t))
	after := &clusterv1.ManagedCluster{}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: clusterName}, after))
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "nobody writes without a reason")
}

// restart runs the agent again, with what happens while it is away and the switch of its view that is on from then.
func restart(t *testing.T, view *atomic.Bool, away func()) {
	t.Helper()
	running.Stop()
	away()
	view.Store(true)
	t.Cleanup(func() { view.Store(false) })
	running.Start()
}

func TestAnAgentThatCannotReadItsClusterStillBeatsAndTakesNothingBack(t *testing.T) {
	create(t, claim("first", "1"))
	expectClaims(t, "first=1")
	var last time.Time
	restart(t, &blind, func() {
		create(t, claim("second", "2"))
		last = heartbeat(t.Context(), t)
	})
	beats(t, last)
	beats(t, heartbeat(t.Context(), t))
	expectClaims(t, "first=1")
	blind.Store(false)
	expectClaims(t, "first=1", "second=2")
}

func TestClaimsAreReportedWithoutTheRightToReadDefinitions(t *testing.T) {
	restart(t, &refuse, func() {})
	create(t, claim("first", "1"))
	expectClaims(t, "first=1")
}
