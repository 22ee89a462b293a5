package fleet

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

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

// TolerationPeriod returns how long a toleration of some seconds lasts: a hundred years at most, as a Duration cannot
// hold the largest number of seconds.
func TolerationPeriod(seconds int64) time.Duration {
	const most = 100 * 366 * 24 * 60 * 60
	return time.Duration(min(seconds, most)) * time.Second
}
