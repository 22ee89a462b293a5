package clusterset

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.clusterset"

// batchPeriod is how long a set waits for further clusters, so that a fleet that joins is counted a few times and not
// once per cluster.
const batchPeriod = 200 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SetupWithManager adds the controller and its watches to the manager. Status changes of sets are watched as well, so
// that one that another client overwrites is repaired.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		For(&clusterv1beta2.ManagedClusterSet{}).
		Watches(&clusterv1.ManagedCluster{}, r.batched()).
		WatchesRawSource(source.Func(atStart)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// atStart enqueues the sets of every hub, of which no event comes while they do not exist.
func atStart(_ context.Context, q queue) error {
	for _, name := range []string{clustersets.Default, clustersets.Global} {
		q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return nil
}

// batched enqueues the sets that a cluster joins or leaves after batchPeriod.
func (r *Reconciler) batched() handler.EventHandler {
	add := func(ctx context.Context, q queue, older, newer client.Object) {
		var list clusterv1beta2.ManagedClusterSetList
		if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, decode.LeaveOut); err != nil {
			log.FromContext(ctx).Error(err, "listing ManagedClusterSets")
			return
		}
		for _, name := range joinedOrLeft(reconcile.Pointers(list.Items), labelsOf(older), labelsOf(newer)) {
			q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}, batchPeriod)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				add(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

// labelsOf returns the labels of a cluster; nil for one that does not exist.
func labelsOf(cluster client.Object) labels.Set {
	if cluster == nil {
		return nil
	}
	set := labels.Set{}
	maps.Copy(set, cluster.GetLabels())
	return set
}

// joinedOrLeft returns the names of the sets that have a cluster with either the older or the newer labels, but not
// with both; nil stands for a cluster that does not exist.
func joinedOrLeft(sets []*clusterv1beta2.ManagedClusterSet, older, newer labels.Set) []string {
	var names []string
	for _, set := range sets {
		selector, err := clustersets.Selector(set.Name, set)
		if err != nil {
			continue // no cluster changes the status of such a set
		}
		if (older != nil && selector.Matches(older)) != (newer != nil && selector.Matches(newer)) {
			names = append(names, set.Name)
		}
	}
	return names
}
