package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func node(name, cpu, memory string, unschedulable bool) corev1.Node {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}, ResourceVersion: "3"},
		Spec:       corev1.NodeSpec{Unschedulable: unschedulable, ProviderID: "x"},
		Status: corev1.NodeStatus{
			Capacity: list(), Allocatable: list(), Images: []corev1.ContainerImage{{Names: []string{"big"}}},
		},
	}
}

// Shows: registration/cluster-status
func TestSum(t *testing.T) {
	gpu := node("c", "1", "1Gi", false)
	gpu.Status.Capacity["nvidia.com/gpu"] = resource.MustParse("2")
	nodes := []corev1.Node{node("a", "1500m", "1Gi", false), node("b", "2", "2Gi", true), gpu}
	total := sum(nodes)
	wantCapacity := map[clusterv1.ResourceName]string{"cpu": "4500m", "memory": "4Gi", "nvidia.com/gpu": "2"}
	wantAllocatable := map[clusterv1.ResourceName]string{"cpu": "2500m", "memory": "2Gi"}
	assert.Equal(t, wantCapacity, text(total.capacity))
	assert.Equal(t, wantAllocatable, text(total.allocatable))

	shuffled := sum([]corev1.Node{nodes[2], nodes[0], nodes[1]})
	assert.Equal(t, text(total.capacity), text(shuffled.capacity))
	assert.Equal(t, "1500m", nodes[0].Status.Capacity.Cpu().String(), "the nodes are left alone")
	assert.Equal(t, text(total.capacity), text(sum(nodes).capacity), "and can be added up again")
	assert.Empty(t, sum(nil).capacity)
}

func text(list clusterv1.ResourceList) map[clusterv1.ResourceName]string {
	all := map[clusterv1.ResourceName]string{}
	for name, quantity := range list {
		all[name] = quantity.String()
	}
	return all
}

func TestStripNodeKeepsWhatTheSumNeeds(t *testing.T) {
	whole := node("a", "1", "1Gi", true)
	stripped, err := StripNode(&whole)
	require.NoError(t, err)
	small, ok := stripped.(*corev1.Node)
	require.True(t, ok)
	assert.Empty(t, small.Status.Images)
	assert.Empty(t, small.Labels)
	assert.Equal(t, "3", small.ResourceVersion)
	assert.Equal(t, sum([]corev1.Node{whole}), sum([]corev1.Node{*small}))
	other, err := StripNode("a tombstone")
	require.NoError(t, err)
	assert.Equal(t, "a tombstone", other)
}

func TestOnlyChangesOfTheSumAskForAPass(t *testing.T) {
	before := node("a", "1", "1Gi", false)
	tests := map[string]struct {
		change func(n *corev1.Node)
		want   bool
	}{
		"a report of the kubelet":           {func(n *corev1.Node) { n.ResourceVersion = "4"; n.Labels = nil }, false},
		"the same amount in another format": {func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("1000m") }, false},
		"a cordon":                          {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"more memory":                       {func(n *corev1.Node) { n.Status.Capacity["memory"] = resource.MustParse("2Gi") }, true},
		"a resource that went away":         {func(n *corev1.Node) { delete(n.Status.Allocatable, "cpu") }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			got := nodeChanged().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: before.DeepCopy(), ObjectNew: after})
			assert.Equal(t, tc.want, got)
		})
	}
}
