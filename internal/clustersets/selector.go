package clustersets

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/message"
)

// Default and Global are the names of the sets that every hub has: the set of clusters that are in no other, and the
// set of all clusters. They exist even without an object.
const (
	Default = "default"
	Global  = "global"
)

// annotationAutoUpdate is the annotation of OCM that leaves the selector of Default or Global to its users, with the
// value "false".
const annotationAutoUpdate = "cluster.open-cluster-management.io/autoupdate"

// Kept returns the selector that the hub manager keeps for a set, whatever its object says; false for one that has the
// selector of its object. set is nil for one that exists without an object.
func Kept(name string, set *clusterv1beta2.ManagedClusterSet) (clusterv1beta2.ManagedClusterSelector, bool) {
	if set != nil && set.Annotations[annotationAutoUpdate] == "false" {
		return clusterv1beta2.ManagedClusterSelector{}, false
	}
	switch name {
	case Default:
		return clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}, true
	case Global:
		return clusterv1beta2.ManagedClusterSelector{
			SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
		}, true
	}
	return clusterv1beta2.ManagedClusterSelector{}, false
}

// Selector returns the selector of the clusters of a set; set is nil for one that exists without an object. The error
// names the set and the field that is wrong.
func Selector(name string, set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	how, kept := Kept(name, set)
	if !kept && set != nil {
		how = set.Spec.ClusterSelector
	}
	switch how.SelectorType {
	case "", clusterv1beta2.ExclusiveClusterSetLabel:
		return labels.SelectorFromSet(labels.Set{clusterv1beta2.ClusterSetLabel: name}), nil
	case clusterv1beta2.LabelSelector:
		selector, err := metav1.LabelSelectorAsSelector(how.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.labelSelector: %s", name,
				message.Cut(err.Error(), message.MaxCause))
		}
		return selector, nil
	}
	return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.selectorType %q is unknown", name, how.SelectorType)
}
