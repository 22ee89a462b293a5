package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/names"
)

// TestAPlacementOfManySlicesLeavesItsWorkerToOthers: thirty Placements of a tenant with a decision group for each cluster
// held all workers until the last of their slices was written. What is half written is not believed.
func TestAPlacementOfManySlicesLeavesItsWorkerToOthers(t *testing.T) {
	const fleetSize = 2*maxWrites + 7
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	require.NoError(t, clusterv1beta1.Install(scheme))
	require.NoError(t, clusterv1beta2.Install(scheme))
	p := placement()
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(1)
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: setGlobal}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: setGlobal}}
	binding.Spec.ClusterSet = setGlobal
	objects := []client.Object{p, set, binding}
	for i := range fleetSize {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i)}}
		cluster.Spec.HubAcceptsClient = true
		objects = append(objects, cluster)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).Build()
	r := &Reconciler{Client: hub, Clock: clocktesting.NewFakePassiveClock(noon())}
	pass := func() (written, decided int, wake, mark bool) {
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		require.NoError(t, err)
		var list clusterv1beta1.PlacementDecisionList
		require.NoError(t, hub.List(t.Context(), &list))
		for _, decision := range list.Items {
			decided += len(decision.Status.Decisions)
		}
		var now clusterv1beta1.Placement
		require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(p), &now))
		mark = meta.FindStatusCondition(now.Status.Conditions, names.ConditionDecided) != nil
		return len(list.Items), decided, result.RequeueAfter > 0, mark
	}
	for i := range 2 {
		written, decided, wake, mark := pass()
		assert.Equal(t, []any{(i + 1) * maxWrites, (i + 1) * maxWrites, true, false}, []any{written, decided, wake, mark}, i)
	}
	written, decided, wake, mark := pass()
	assert.Equal(t, []any{fleetSize, fleetSize, false, true}, []any{written, decided, wake, mark})
}
