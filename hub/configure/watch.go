package configure

import (
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Watch adds to a controller of add-ons the watches of all that decides their configuration.
func (c *Configurer) Watch(b *builder.Builder) *builder.Builder {
	b = b.Watches(c.AddOns.WatchedClusterManagementAddOn(), handler.EnqueueRequestsFromMapFunc(c.addOnsOfCMA),
		builder.WithPredicates(instructionsChanged())).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(c.addOnsOfPlacement),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&clusterv1beta1.PlacementDecision{}, c.addOnsOfDecision())
	edited := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	for _, kind := range c.Store.Watched() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(c.addOnsOfConfig), builder.WithPredicates(edited))
	}
	return b
}
