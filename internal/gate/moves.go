package gate

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/policies"
)

// Moves returns a handler of ManagedClusters that enqueues, after a while, what mapped returns for a cluster and the
// windows that a change of it concerns. Where there are none, nothing is mapped. What there is at the start concerns
// none: everything that reads windows looks at all of them then.
func (r *Reader) Moves(
	after time.Duration, mapped func(context.Context, client.Object, []policies.MaintenanceWindow) []ctrl.Request,
) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, o, was, is client.Object) {
		all, err := r.windows(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding the windows of a cluster that changed", "cluster", o.GetName())
		}
		before, _ := was.(*clusterv1.ManagedCluster)
		present, _ := is.(*clusterv1.ManagedCluster)
		windows := concerned(all, before, present)
		if len(windows) == 0 {
			return
		}
		for _, request := range mapped(ctx, o, windows) {
			q.AddAfter(request, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				add(ctx, q, e.Object, nil, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, q, e.ObjectNew, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, e.Object, nil) },
	}
}

// concerned returns the windows that a change of a cluster concerns: they select it now or not any more, or it has
// another value of the claim that they name. Of a cluster that is created, was is nil, and is of one that is gone.
func concerned(all []policies.MaintenanceWindow, was, is *clusterv1.ManagedCluster) []policies.MaintenanceWindow {
	if len(all) == 0 {
		return nil
	}
	var before, present Cluster
	if was != nil {
		before = ClusterOf(was)
	}
	if is != nil {
		present = ClusterOf(is)
	}
	both := was != nil && is != nil
	var found []policies.MaintenanceWindow
	for i := range all {
		w := &all[i]
		claim := w.Spec.TimeZoneClaim
		moved := claim != "" && before.Claims[claim] != present.Claims[claim]
		if both && !moved && !namesOther(&w.Spec.ClusterSelector, before.Labels, present.Labels) {
			continue
		}
		selected, isSelected := was != nil && selects(w, before.Labels), is != nil && selects(w, present.Labels)
		if selected != isSelected || isSelected && moved {
			found = append(found, *w)
		}
	}
	return found
}

// namesOther reports whether a selector names a label that differs.
func namesOther(s *metav1.LabelSelector, was, is map[string]string) bool {
	differs := func(key string) bool {
		before, had := was[key]
		present, has := is[key]
		return had != has || before != present
	}
	for key := range s.MatchLabels {
		if differs(key) {
			return true
		}
	}
	for i := range s.MatchExpressions {
		if differs(s.MatchExpressions[i].Key) {
			return true
		}
	}
	return false
}

// selects reports whether a window selects a cluster; one whose selector cannot be read selects none.
func selects(w *policies.MaintenanceWindow, of map[string]string) bool {
	for key, value := range w.Spec.ClusterSelector.MatchLabels { // Most windows end here, without a selector.
		if has, is := of[key]; !is || has != value {
			return false
		}
	}
	if len(w.Spec.ClusterSelector.MatchExpressions) == 0 {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(&w.Spec.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(of))
}
