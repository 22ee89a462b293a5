package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// annotateAcceptance annotates a cluster that is or was accepted, and reports whether that changed it.
func annotateAcceptance(cluster *clusterv1.ManagedCluster, now time.Time) bool {
	if !cluster.Spec.HubAcceptsClient && !names.AcceptedBefore(cluster, cluster.Status.Conditions) {
		return false
	}
	return annotate(cluster, names.AnnotationAcceptedOn, now)
}

// annotate sets an annotation to an instant unless it exists, and reports whether it did.
func annotate(o metav1.Object, key string, at time.Time) bool {
	all := o.GetAnnotations()
	if _, ok := all[key]; ok {
		return false
	}
	if all == nil {
		all = map[string]string{}
	}
	all[key] = at.UTC().Format(time.RFC3339)
	o.SetAnnotations(all)
	return true
}
