package hashes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.hashes"

// delay is how long a changed configuration waits: a hub manager that reads it has reported its hash by then, and
// nothing is left to write.
const delay = time.Second

// Reconciler reports the hashes of configurations.
type Reconciler struct {
	// AddOns reads add-ons and writes the status of ClusterManagementAddOns.
	AddOns addonapi.Client
	// Store reads configurations.
	Store *addonconfig.Store
	// Supports reports whether an add-on understands a kind of configuration; false for all kinds of an add-on of others.
	Supports func(addOn string, kind addonv1beta1.ConfigGroupResource) bool
	// Changed sends the configurations of other kinds that changed.
	Changed <-chan event.TypedGenericEvent[objectwatch.Ref]
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
}

// Reconcile reports the hashes of one ClusterManagementAddOn.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	f, err := r.observe(ctx, request.Name)
	if err != nil || f.cma == nil {
		return reconcile.FromError(err).Settle(now)
	}
	_, err = r.AddOns.PatchClusterManagementAddOnStatus(ctx, f.cma, conclude(f))
	return reconcile.FromError(client.IgnoreNotFound(err)).And(reconcile.FromError(f.unconfirmed)).Settle(now)
}

// observe reads the facts about one ClusterManagementAddOn, and has the configurations watched that it and its add-ons
// name. cma is nil when it does not exist.
func (r *Reconciler) observe(ctx context.Context, name string) (facts, error) {
	var f facts
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return f, err
	case err == nil:
		f.cma = cma
	}
	var configs []addonv1beta1.AddOnConfig
	var named []addonconfig.Named
	add := func(cluster string, all []addonv1beta1.AddOnConfig) {
		all = slices.DeleteFunc(all, func(c addonv1beta1.AddOnConfig) bool {
			return !r.Supports(name, c.ConfigGroupResource)
		})
		if configs = append(configs, all...); len(all) > 0 {
			named = append(named, addonconfig.Named{Cluster: cluster, Configs: all})
		}
	}
	if f.cma != nil {
		add("", addonconfig.NamedBy(f.cma))
	}
	err = r.AddOns.EachAddOn(ctx, func(o client.Object) {
		add(o.GetNamespace(), addonapi.ConfigsOf(o))
	}, client.MatchingFields{addonapi.IndexName: name}, decode.LeaveOut)
	if err != nil {
		return f, err
	}
	slices.SortStableFunc(named, func(a, b addonconfig.Named) int { return strings.Compare(a.Cluster, b.Cluster) })
	r.Store.Want(name, named...)
	if f.states, err = r.Store.States(ctx, configs...); err != nil || f.cma == nil {
		return f, err
	}
	f.confirm(ctx, r.Store)
	return f, nil
}

// confirm makes the states unknown of configurations that changed and that the API server has not so: a cache that is
// behind would have an earlier content rolled out to all clusters.
func (f *facts) confirm(ctx context.Context, store *addonconfig.Store) {
	for _, config := range changed(*f) {
		if err := store.Confirm(ctx, config); err != nil {
			delete(f.states, config)
			f.unconfirmed = errors.Join(f.unconfirmed, err)
		}
	}
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(1)).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), reconcile.Delayed(delay, ofName)).
		Watches(r.AddOns.WatchedAddOn(), reconcile.Delayed(delay, ofName),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, kind := range r.Store.Watched() {
		b = b.Watches(kind, reconcile.Delayed(delay, func(ctx context.Context, o client.Object) []ctrl.Request {
			return r.namedBy(ctx, addonconfig.ConfigKeyOf(o))
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	b = b.WatchesRawSource(source.TypedChannel(r.Changed, reconcile.Delayed(delay,
		func(ctx context.Context, ref objectwatch.Ref) []ctrl.Request {
			return r.namedBy(ctx, addonconfig.KeyOf(ref))
		})))
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// ofName maps a ClusterManagementAddOn, or an add-on on a cluster, to its name.
func ofName(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
}

// namedBy returns the ClusterManagementAddOns that name a configuration, or whose add-ons do.
func (r *Reconciler) namedBy(ctx context.Context, key string) []ctrl.Request {
	return r.AddOns.ManagementRequests(ctx, addonconfig.IndexConfig, key)
}
