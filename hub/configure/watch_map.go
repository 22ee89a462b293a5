package configure

import (
	"context"

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
	"github.com/spokelet/spokelet/internal/addonconfig"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

func (c *Configurer) addOnsOfCMA(ctx context.Context, o client.Object) []ctrl.Request {
	return c.addOnsBy(ctx, addonapi.IndexName, o.GetName())
}

func (c *Configurer) addOnsOfPlacement(ctx context.Context, o client.Object) []ctrl.Request {
	var requests []ctrl.Request
	placement := addonapi.PlacementKey(o.GetNamespace(), o.GetName())
	for _, name := range c.cmasOf(ctx, addonapi.IndexPlacement, placement) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// addOnsOfConfig maps a config to the add-ons that name it, and to all add-ons of a ClusterManagementAddOn that names
// it.
func (c *Configurer) addOnsOfConfig(ctx context.Context, o client.Object) []ctrl.Request {
	return c.addOnsNaming(ctx, addonconfig.ConfigKeyOf(o))
}

func (c *Configurer) addOnsNaming(ctx context.Context, key string) []ctrl.Request {
	requests := c.addOnsBy(ctx, addonconfig.IndexConfig, key)
	for _, name := range c.cmasOf(ctx, addonconfig.IndexConfig, key) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// addOnsOfDecision enqueues the add-ons of the clusters that a PlacementDecision adds or drops.
func (c *Configurer) addOnsOfDecision() handler.EventHandler {
	add := func(ctx context.Context, q queue, was, is client.Object) {
		for _, decision := range []client.Object{was, is} {
			if decision == nil {
				continue
			}
			for _, name := range c.cmasOf(ctx, addonapi.IndexPlacement, placementKey(asDecision(decision))) {
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
	moved := addonapi.PlacementOf(was) != addonapi.PlacementOf(is)
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

func (c *Configurer) addOnsBy(ctx context.Context, index, value string) []ctrl.Request {
	return c.AddOns.Requests(ctx, nil, client.MatchingFields{index: value})
}

func (c *Configurer) cmasOf(ctx context.Context, index, value string) []string {
	cmas, err := c.AddOns.ListClusterManagementAddOns(ctx, client.MatchingFields{index: value})
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

// placementKey returns the index key of the placement of a PlacementDecision.
func placementKey(decision *clusterv1beta1.PlacementDecision) string {
	ref := addonapi.PlacementOf(decision)
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}
