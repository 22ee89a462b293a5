package clocks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/placement"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: hub/toleration-seconds
func TestATolerationEndsToTheSecond(t *testing.T) {
	t.Parallel()
	live := suite.NewLive(t, plane.Admin())
	clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	reconciler := &placement.Reconciler{Client: live, Live: live, Clock: clock}
	h := suite.Reconciler{Client: live, Clock: clock, Reconcile: reconciler.Reconcile}
	namespace := plane.Namespace(t, "tolerations")
	name := namespace
	tainted := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": namespace}}}
	tainted.Spec.HubAcceptsClient = true
	tainted.Spec.Taints = []clusterv1.Taint{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(clock.Now()),
	}}
	require.NoError(t, plane.Client.Create(t.Context(), tainted))
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "global"}}
	binding.Spec.ClusterSet = "global"
	require.NoError(t, plane.Client.Create(t.Context(), binding))
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"of": namespace}},
	}}}
	p.Spec.Tolerations = []clusterv1beta1.Toleration{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(300)),
	}}
	require.NoError(t, plane.Client.Create(t.Context(), p))
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	selected := func() int {
		require.NoError(t, plane.Client.Get(t.Context(), request.NamespacedName, p))
		return int(p.Status.NumberOfSelectedClusters)
	}

	assert.Equal(t, 5*time.Minute, h.Settle(t, request), "the toleration counts from the time of the taint")
	assert.Equal(t, 1, selected())
	h.Step(5*time.Minute - time.Second)
	assert.Equal(t, time.Second, h.Settle(t, request))
	assert.Equal(t, 1, selected())
	h.Step(time.Second)
	assert.Zero(t, h.Settle(t, request))
	assert.Equal(t, 0, selected())
	c := p.Status.Conditions[1]
	assert.Equal(t, "NoManagedClusterMatched", c.Reason)
	assert.Contains(t, c.Message, "1 of the 1 clusters that match are kept out by taints that are not tolerated")
}
