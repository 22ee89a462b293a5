package rollout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// batchPeriod is how long a ClusterManagementAddOn waits for further changes, so that a rollout over many clusters is
// counted a few times and not once per change.
const batchPeriod = 250 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// batched enqueues the requests of mapped after batchPeriod.
func batched(mapped handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, request := range mapped(ctx, object) {
				q.AddAfter(request, batchPeriod)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}

// planOfCMA enqueues a ClusterManagementAddOn at once when its spec changes, and after batchPeriod when only its status
// does.
func planOfCMA() handler.EventHandler {
	key := func(o client.Object) ctrl.Request { return planRequest(o.GetName()) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(key(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if instructionsDiffer(e.ObjectOld, e.ObjectNew) {
				q.Add(key(e.ObjectNew))
				return
			}
			q.AddAfter(key(e.ObjectNew), batchPeriod)
		},
	}
}

func planOfAddOn(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{planRequest(o.GetName())}
}

func (r *Reconciler) plansOfDecision(ctx context.Context, o client.Object) []ctrl.Request {
	decision, ok := o.(*clusterv1beta1.PlacementDecision)
	if !ok {
		return nil
	}
	return plans(r.cmasOf(ctx, addonapi.IndexPlacement, placementKey(decision)))
}

func (r *Reconciler) plansOfPlacement(ctx context.Context, o client.Object) []ctrl.Request {
	return plans(r.cmasOf(ctx, addonapi.IndexPlacement, addonapi.PlacementKey(o.GetNamespace(), o.GetName())))
}

func (r *Reconciler) plansOfConfig(ctx context.Context, o client.Object) []ctrl.Request {
	return plans(r.cmasOf(ctx, indexConfig, configOf(o)))
}

func (r *Reconciler) addOnsOfCMA(ctx context.Context, o client.Object) []ctrl.Request {
	return r.addOnsBy(ctx, addonapi.IndexName, o.GetName())
}

func (r *Reconciler) addOnsOfPlacement(ctx context.Context, o client.Object) []ctrl.Request {
	var requests []ctrl.Request
	placement := addonapi.PlacementKey(o.GetNamespace(), o.GetName())
	for _, name := range r.cmasOf(ctx, addonapi.IndexPlacement, placement) {
		requests = append(requests, r.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// addOnsOfConfig maps a config to the add-ons that name it, and to all add-ons of a ClusterManagementAddOn that names
// it.
func (r *Reconciler) addOnsOfConfig(ctx context.Context, o client.Object) []ctrl.Request {
	key := configOf(o)
	requests := r.addOnsBy(ctx, indexConfig, key)
	for _, name := range r.cmasOf(ctx, indexConfig, key) {
		requests = append(requests, r.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// addOnsOfDecision enqueues the add-ons of the clusters that a PlacementDecision adds or drops.
func (r *Reconciler) addOnsOfDecision() handler.EventHandler {
	add := func(ctx context.Context, q queue, was, is client.Object) {
		for _, decision := range []client.Object{was, is} {
			if decision == nil {
				continue
			}
			for _, name := range r.cmasOf(ctx, addonapi.IndexPlacement, placementKey(asDecision(decision))) {
				for _, cluster := range changedClusters(asDecision(was), asDecision(is)) {
					q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: cluster, Name: name}})
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

func asDecision(o client.Object) *clusterv1beta1.PlacementDecision {
	if decision, ok := o.(*clusterv1beta1.PlacementDecision); ok {
		return decision
	}
	return &clusterv1beta1.PlacementDecision{}
}

// changedClusters returns the clusters that are in only one of two decisions; all of both if they belong to different
// placements.
func changedClusters(was, is *clusterv1beta1.PlacementDecision) []string {
	moved := placementOf(was) != placementOf(is)
	before, after := sets.New(addonapi.SelectedClusters(was)...), sets.New(addonapi.SelectedClusters(is)...)
	var changed []string
	for cluster := range before {
		if moved || !after.Has(cluster) {
			changed = append(changed, cluster)
		}
	}
	for cluster := range after {
		if !before.Has(cluster) {
			changed = append(changed, cluster)
		}
	}
	return changed
}

// addOnOfWork maps a work to its add-on, which is in another namespace if the work is for a hosting cluster.
func addOnOfWork(_ context.Context, o client.Object) []ctrl.Request {
	name := o.GetLabels()[names.LabelAddonName]
	if name == "" {
		return nil
	}
	namespace := o.GetLabels()[names.LabelAddonNamespace]
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	return reconcile.Request(namespace, name)
}

func (r *Reconciler) addOnsBy(ctx context.Context, index, value string) []ctrl.Request {
	return r.AddOns.Requests(ctx, nil, client.MatchingFields{index: value})
}

func (r *Reconciler) cmasOf(ctx context.Context, index, value string) []string {
	cmas, err := r.AddOns.ListClusterManagementAddOns(ctx, client.MatchingFields{index: value})
	if err != nil {
		log.FromContext(ctx).Error(err, "looking for ClusterManagementAddOns to look at", "index", index, "value", value)
		return nil
	}
	found := make([]string, 0, len(cmas))
	for _, cma := range cmas {
		found = append(found, cma.Name)
	}
	return found
}

func plans(cmas []string) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(cmas))
	for _, name := range cmas {
		requests = append(requests, planRequest(name))
	}
	return requests
}

func planRequest(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}
