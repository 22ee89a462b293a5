package clustersets

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Default and Global are the names of the sets that exist even without an object: the set of clusters that are in no
// other, and the set of all clusters.
const (
	Default = "default"
	Global  = "global"
)

// Selector returns the selector of the clusters of a set; set is nil for one that exists without an object. The error
// names the set and the field that is wrong.
func Selector(name string, set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	exclusive := labels.SelectorFromSet(labels.Set{clusterv1beta2.ClusterSetLabel: name})
	if set == nil {
		if name == Global {
			return labels.Everything(), nil
		}
		return exclusive, nil
	}
	how := set.Spec.ClusterSelector
	switch how.SelectorType {
	case "", clusterv1beta2.ExclusiveClusterSetLabel:
		return exclusive, nil
	case clusterv1beta2.LabelSelector:
		selector, err := metav1.LabelSelectorAsSelector(how.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.labelSelector: %w", name, err)
		}
		return selector, nil
	}
	return nil, fmt.Errorf("ManagedClusterSet %s: spec.clusterSelector.selectorType %q is unknown", name, how.SelectorType)
}
