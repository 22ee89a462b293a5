package configure

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Watch adds to a controller of add-ons the watches of all that decides their configuration.
func (c *Configurer) Watch(b *builder.Builder) *builder.Builder {
	c.awaiting = &awaiting{addOns: map[types.NamespacedName]doubts{}}
	b = b.Watches(c.AddOns.WatchedClusterManagementAddOn(), c.addOnsOfCMA(),
		builder.WithPredicates(instructionsChanged())).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(c.addOnsOfPlacement),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&clusterv1beta1.Placement{}, c.wakesAwaiting(client.ObjectKeyFromObject)).
		Watches(&clusterv1beta1.PlacementDecision{}, c.addOnsOfDecision()).
		Watches(&clusterv1beta1.PlacementDecision{}, c.wakesAwaiting(placementOfDecision)).
		Watches(c.AddOns.WatchedAddOn(), c.notesAddOns()).
		Watches(&appsv1.ControllerRevision{}, handler.Funcs{DeleteFunc: c.storesAgain})
	return c.watchConfigs(b)
}

// watchConfigs adds the watches of configurations.
func (c *Configurer) watchConfigs(b *builder.Builder) *builder.Builder {
	edited := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	for _, kind := range c.Store.Watched() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(c.addOnsOfConfig), builder.WithPredicates(edited))
	}
	if c.Changed != nil {
		b = b.WatchesRawSource(source.TypedChannel(c.Changed,
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, ref objectwatch.Ref) []ctrl.Request {
				return c.addOnsNaming(ctx, addonconfig.KeyOf(ref))
			})))
	}
	return b
}
