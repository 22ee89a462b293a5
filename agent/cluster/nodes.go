package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// StripNode is the cache transform for Nodes. It keeps the fields that this package and caches read (name, capacity,
// allocatable and unschedulable) and drops the rest, which is nearly all of a Node. Other objects pass unchanged.
func StripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}, nil
}

// nodeChanged passes the events of Nodes that change the sums; the periodic reports of a kubelet do not.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.Spec.Unschedulable != after.Spec.Unschedulable ||
				!equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity) ||
				!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
		},
	}
}

// resources are the sums over the nodes of a cluster.
type resources struct {
	capacity, allocatable clusterv1.ResourceList
}

// sum adds up the nodes: capacity over all of them, allocatable over the schedulable ones. A resource that no node
// reports is not in the sum. The order of the nodes does not matter.
func sum(nodes []corev1.Node) resources {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	total := resources{capacity: clusterv1.ResourceList{}, allocatable: clusterv1.ResourceList{}}
	for i := range nodes {
		add(total.capacity, nodes[i].Status.Capacity)
		if !nodes[i].Spec.Unschedulable {
			add(total.allocatable, nodes[i].Status.Allocatable)
		}
	}
	return total
}

func add(total clusterv1.ResourceList, more corev1.ResourceList) {
	for name, quantity := range more {
		have := total[clusterv1.ResourceName(name)]
		have.Add(quantity)
		total[clusterv1.ResourceName(name)] = have
	}
}
