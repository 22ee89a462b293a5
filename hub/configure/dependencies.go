package configure

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Has reports whether an add-on has the content that it is to have, or that is not known. Its status may not say yet
// that it is to have another one.
func (c *Configurer) Has(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	f, err := c.observeSpecs(ctx, addOn, false)
	if err != nil || f.cma == nil || f.unselected() || !addonapi.Managed(f.cma) {
		return true, err
	}
	if f.returnedFrom(f.content()) { // It gets nothing else until a person says so.
		return true, nil
	}
	target := f.target()
	return len(target.Missing)+len(target.Waiting) > 0 || target.Admitted(addOn), nil
}

// noteDependencies says in condition Degraded which dependencies are not satisfied. An agent may write the condition,
// too: what has another reason is its own, and stays.
func (f facts) noteDependencies(conditions *[]metav1.Condition, now time.Time) {
	const kind = addonv1beta1.ManagedClusterAddOnConditionDegraded
	have := meta.FindStatusCondition(*conditions, kind)
	ours := have != nil && (have.Reason == gate.ReasonDependency || have.Reason == gate.ReasonRequiredDependency)
	switch {
	case f.undecoded, have != nil && !ours, !f.addOn.DeletionTimestamp.IsZero():
	case f.degraded.Reason != "":
		want := f.degraded
		want.Type, want.Status = kind, metav1.ConditionTrue
		reconcile.SetCondition(conditions, want, now)
	case ours:
		meta.RemoveStatusCondition(conditions, kind)
	}
}

// watchDependencies adds the watches of what comes before add-ons.
func (c *Configurer) watchDependencies(b *builder.Builder) *builder.Builder {
	return b.Watches(c.AddOns.WatchedAddOn(), handler.EnqueueRequestsFromMapFunc(c.ofDependency),
		builder.WithPredicates(gate.DependencyChanged())).
		Watches(c.AddOns.WatchedClusterManagementAddOn(), handler.EnqueueRequestsFromMapFunc(c.ofNewName),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&policies.AddOnPolicy{}, handler.EnqueueRequestsFromMapFunc(c.ofOrder),
			builder.WithPredicates(gate.OrderChanged()))
}

// ofDependency maps an add-on to those on its cluster that depend on it.
func (c *Configurer) ofDependency(ctx context.Context, o client.Object) []ctrl.Request {
	return c.Gates.OnCluster(ctx, o.GetNamespace(), c.Gates.Dependents(ctx, o.GetName()))
}

// ofNewName maps a ClusterManagementAddOn that comes or goes to the add-ons that depend on it.
func (c *Configurer) ofNewName(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, name := range c.Gates.Dependents(ctx, o.GetName()) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// ofOrder maps a policy with other dependencies to its add-ons, and to those that depend on others: it may make a cycle
// that they are in, or break it up.
func (c *Configurer) ofOrder(ctx context.Context, o client.Object) []ctrl.Request {
	requests := c.addOnsBy(ctx, addonapi.IndexName, o.GetName())
	order, err := c.Gates.Order(ctx, decode.LeaveOut)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding what depends on others")
	}
	for _, name := range order.Ordered() {
		if name != o.GetName() {
			requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
		}
	}
	return requests
}
