package fleet

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// Unserved returns why a cluster does not get the add-ons of the placements that select it, now or soon; nil when it
// does. cluster and its namespace are nil when they do not exist; the hub manager creates the namespace. foreign
// reports that the cause is a namespace of others, which only a person changes.
func Unserved(
	name string, cluster *clusterv1.ManagedCluster, namespace *metav1.PartialObjectMetadata,
) (foreign bool, err error) {
	switch {
	case cluster == nil:
		return false, fmt.Errorf("there is no cluster %s", name)
	case !cluster.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("cluster %s is being deleted", name)
	case !cluster.Spec.HubAcceptsClient:
		return false, fmt.Errorf("cluster %s is not accepted", name)
	case namespace == nil:
		return false, nil
	}
	err = names.CheckNamespace(namespace, name)
	return err != nil, err
}

// Tolerated reports whether a toleration covers a taint that was added at an instant, and whether all of those end
// that do: the last one of them until an instant.
func Tolerated(
	tolerations []clusterv1beta1.Toleration, taint clusterv1.Taint, added time.Time,
) (covered, end bool, until time.Time) {
	for _, t := range tolerations {
		if !covers(t, taint) {
			continue
		}
		// The API gives the seconds no meaning for NoSelectIfNew.
		if t.TolerationSeconds == nil || taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
			return true, false, time.Time{}
		}
		const most = 100 * 366 * 24 * 60 * 60 // A Duration cannot hold the largest number of seconds.
		ends := added.Add(time.Duration(min(*t.TolerationSeconds, most)) * time.Second)
		if covered, end = true, true; ends.After(until) {
			until = ends
		}
	}
	return covered, end, until
}

// covers reports whether a toleration matches a taint; an empty key matches all keys, an empty effect all effects.
func covers(t clusterv1beta1.Toleration, taint clusterv1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == clusterv1beta1.TolerationOpExists || t.Value == taint.Value
}
