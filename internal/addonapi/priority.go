package addonapi

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// lastPriority is the highest clean-up priority, which is deleted last.
const lastPriority = 100

// CleanupPriority returns in which order an object goes with its cluster, from 0 (first) to 100; an absent or invalid
// annotation is 0.
func CleanupPriority(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1.CleanupPriorityAnnotationKey])
	if err != nil || n < 0 || n > lastPriority {
		return 0
	}
	return n
}
