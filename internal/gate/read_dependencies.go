package gate

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/policies"
)

// Order returns the order of all add-ons. A policy that cannot be decoded is an error, unless opts leave it out.
func (r *Reader) Order(ctx context.Context, opts ...client.ListOption) (Order, error) {
	if r == nil {
		return Order{}, nil
	}
	var all policies.AddOnPolicyList
	if err := r.Client.List(ctx, &all, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return Order{}, fmt.Errorf("listing AddOnPolicies: %w", err)
	}
	return NewOrder(all.Items), nil
}

// after adds the dependencies of an add-on to its gate. What a policy of another add-on says that cannot be decoded
// does not matter for it, but for a cycle that they are in.
func (r *Reader) after(ctx context.Context, g Gate, addOn string) (Gate, error) {
	if g.policy == nil || len(g.policy.Spec.DependsOn) == 0 {
		return g, nil
	}
	o, err := r.Order(ctx, decode.LeaveOut)
	if err != nil {
		return g, err
	}
	var failed error
	g = g.After(addOn, o, func(name string) bool {
		definition, err := r.AddOns.PeekClusterManagementAddOn(ctx, name)
		switch {
		case decode.IsUnknown(err):
			return true
		case err != nil:
			failed = err
		}
		return definition != nil
	})
	return g, failed
}

// On returns what a gate needs to know of a cluster.
func (r *Reader) On(ctx context.Context, g Gate, cluster string) (c Cluster, err error) {
	if g.HasWindows() {
		if c, err = r.Cluster(ctx, cluster); err != nil {
			return c, err
		}
	}
	for _, d := range g.before.all {
		if c.Before == nil {
			c.Before = make(map[string]State, len(g.before.all))
		}
		if c.Before[d.Name], err = r.state(ctx, d, cluster); err != nil {
			return c, err
		}
	}
	return c, nil
}

// state reads the state of a dependency on a cluster.
func (r *Reader) state(ctx context.Context, d policies.Dependency, cluster string) (State, error) {
	wire, err := r.AddOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: d.Name})
	switch {
	case decode.IsUnknown(err):
		return State{Lacks: "whose ManagedClusterAddOn cannot be decoded"}, nil
	case err != nil:
		return State{}, err
	case wire == nil:
		return State{Absent: true}, nil
	}
	addOn, err := addonapi.AddOn(wire)
	if err != nil {
		return State{}, fmt.Errorf("looking at a dependency: %w", err)
	}
	condition := d.Condition
	if condition == "" {
		condition = addonv1beta1.ManagedClusterAddOnConditionAvailable
	}
	has := true
	if r.Has != nil {
		if has, err = r.Has(ctx, addOn); decode.IsUnknown(err) {
			has, err = true, nil
		}
	}
	if err != nil {
		return State{}, err
	}
	return StateOf(addOn, condition, has), nil
}

// Known returns the order as far as it is known, for handlers of events: what cannot be read is logged or left out.
func (r *Reader) Known(ctx context.Context) Order {
	o, err := r.Order(ctx, decode.LeaveOut)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding which add-ons depend on others")
	}
	return o
}

// Dependents returns the names of the add-ons that depend on one, for who is told that it changed.
func (r *Reader) Dependents(ctx context.Context, addOn string) []string {
	return r.Known(ctx).Named(addOn)
}

// Others returns what the add-ons on a cluster mean for one that goes from it, by an order and the cache.
func (r *Reader) Others(ctx context.Context, o Order, key types.NamespacedName) (Others, error) {
	return o.Others(key, func(there types.NamespacedName) (client.Object, error) { return r.AddOns.PeekAddOn(ctx, there) })
}

// OnCluster returns requests for those of some add-ons that a cluster has.
func (r *Reader) OnCluster(ctx context.Context, cluster string, addOns []string) (requests []ctrl.Request) {
	for _, name := range addOns {
		key := types.NamespacedName{Namespace: cluster, Name: name}
		// One that cannot be read is asked about, and says so.
		if addOn, err := r.AddOns.PeekAddOn(ctx, key); addOn != nil || err != nil {
			requests = append(requests, ctrl.Request{NamespacedName: key})
		}
	}
	return requests
}

// DependencyChanged passes add-ons that come or go, or whose conditions say something else. An agent may write other
// messages all the time, so these count for nothing, except that the one of Configured says whether it waits.
func DependencyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := addonapi.Conditions(e.ObjectOld), addonapi.Conditions(e.ObjectNew)
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!slices.EqualFunc(was, is, sameCondition) || (causes.Waits(was) == nil) != (causes.Waits(is) == nil)
	}}
}

func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

// OrderChanged passes policies that come or go with dependencies, or get others.
func OrderChanged() predicate.Predicate {
	depends := func(o client.Object) []policies.Dependency {
		if p, is := o.(*policies.AddOnPolicy); is && p.DeletionTimestamp.IsZero() {
			return p.Spec.DependsOn
		}
		return nil
	}
	has := func(o client.Object) bool { return len(depends(o)) > 0 }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(depends(e.ObjectOld), depends(e.ObjectNew))
		},
	}
}
