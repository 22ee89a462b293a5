package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeDependencies reads what the policies say of an add-on that goes from clusters.
func (r *Reconciler) observeDependencies(ctx context.Context, f *fleetFacts, name string) error {
	f.others.knows = r.Gates != nil
	order, err := r.Gates.Order(ctx)
	if err == nil {
		f.others.gate, err = r.Gates.Gate(ctx, name)
	}
	if decode.IsUnknown(err) {
		f.others.unknown, err = err, nil
	}
	f.others.brings = slices.ContainsFunc(order.Dependents(name), func(d gate.Dependent) bool { return d.Installs }) ||
		f.others.knows && r.memory.brought(name)
	f.others.cycle, f.order = order.Cycle(name), order
	return err
}

// confirmOrder returns an error if the policies of the API server order the add-on otherwise than those of the
// cache. The removal of a cluster waits for no order.
func (r *Reconciler) confirmOrder(ctx context.Context, f fleetFacts, p removals) error {
	stays := func(c candidate) bool { return c.managed != nil && c.managed.DeletionTimestamp.IsZero() }
	if r.Gates == nil || !slices.ContainsFunc(slices.Concat(p.remove, p.relabel), stays) {
		return nil
	}
	live, err := r.Gates.From(r.Live).Order(ctx)
	name := f.cma.GetName()
	if err == nil && !slices.Equal(live.Dependents(name), f.order.Dependents(name)) {
		return reconcile.Behind(policies.GroupVersion().Group, "addonpolicies", name)
	}
	return err
}

// confirmOthers returns an error if the API server has an add-on on a cluster that keeps the one there.
func (r *Reconciler) confirmOthers(ctx context.Context, f fleetFacts, c candidate) error {
	if c.managed == nil || !c.managed.DeletionTimestamp.IsZero() {
		return nil
	}
	key := types.NamespacedName{Namespace: c.cluster, Name: f.cma.GetName()}
	o, err := f.order.Others(key, func(there types.NamespacedName) (client.Object, error) {
		return reconcile.Get(ctx, r.Live, there, r.AddOns.WatchedAddOn())
	})
	if err == nil && len(o.Bring)+len(o.Hold) > 0 {
		return behindCluster(c.cluster)
	}
	return err
}

// relabel says of add-ons that no placement selects any more that other add-ons bring them along, and what a placement
// gave them, which the defaults may lack.
func (r *Reconciler) relabel(ctx context.Context, p removals) error {
	for _, c := range p.relabel {
		addOn, err := r.AddOns.GetAddOnFrom(ctx, r.Live, client.ObjectKeyFromObject(c.addon)) // A cache may be behind.
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("finding what placements gave an add-on that another one brings along: %w", err)
		}
		after, want := copyOf(c.addon), metav1.ObjectMeta{
			Labels: maps.Clone(c.addon.GetLabels()), Annotations: maps.Clone(c.addon.GetAnnotations()),
		}
		metav1.SetMetaDataLabel(&want, names.LabelInstalledBy, names.InstalledByDependency)
		metav1.SetMetaDataAnnotation(&want, names.AnnotationPlacementGave, addonconfig.Given(addOn).String())
		after.SetLabels(want.Labels)
		after.SetAnnotations(want.Annotations)
		if _, err := reconcile.PatchMetadata(ctx, r.AddOns.Client, c.addon, after); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// watchPolicies adds the watches of what policies and windows say.
func (r *Reconciler) watchPolicies(b *builder.Builder) *builder.Builder {
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return b.Watches(&policies.AddOnPolicy{}, changes(r.ofOrder), builder.WithPredicates(gate.OrderChanged())).
		Watches(&policies.AddOnPolicy{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, o client.Object) []ctrlreconcile.Request {
				return []ctrlreconcile.Request{ofFleet(o.GetName())}
			}), edited).
		Watches(&policies.MaintenanceWindow{}, handler.EnqueueRequestsFromMapFunc(r.ofWindow), edited).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofMovedCluster),
			builder.WithPredicates(gate.PlaceChanged())).
		Watches(r.AddOns.WatchedAddOn(), handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.ofDependent(ctx, e.Object, false, q) },
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.ofDependent(ctx, e.Object, true, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { r.ofDependent(ctx, e.ObjectNew, false, q) },
		}, builder.WithPredicates(predicate.Or[client.Object](reconcile.CreatedOrDeleted(), reconcile.DeletionStarted()))).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.bring(ctx, e.Object.GetName(), q) },
		})
}

// ofDependent maps an add-on that comes or goes to those on its cluster that it brings along, and to the removal of
// those that go after it. Of one that is gone, it is noted what it brought along alone, until one comes that brings
// that.
func (r *Reconciler) ofDependent(ctx context.Context, o client.Object, gone bool, q queue) {
	if isBrought(o) && r.memory.bring(o.GetName()) {
		q.Add(ofFleet(o.GetName())) // Its pass forgets it where it is not defined.
	}
	order := r.Gates.Known(ctx)
	for _, name := range order.Depends(o.GetName()) {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
		brings := slices.ContainsFunc(order.Dependents(name), func(d gate.Dependent) bool {
			return d.Installs && d.Name == o.GetName()
		})
		if brings && (gone || o.GetDeletionTimestamp().IsZero()) {
			r.memory.follow(key, gone && r.isLeft(ctx, order, key), r.Clock.Now())
		} else {
			r.memory.note(key, r.Clock.Now())
		}
		q.Add(ctrlreconcile.Request{NamespacedName: key})
		q.Add(ofFleet(name))
	}
}

// isLeft reports whether nothing on the cluster brings an add-on along there any more.
func (r *Reconciler) isLeft(ctx context.Context, order gate.Order, key types.NamespacedName) bool {
	others, err := r.Gates.Others(ctx, order, key)
	return err == nil && len(others.Bring) == 0
}

// ofOrder maps a policy with other dependencies to the add-ons that others bring along, or did, and to their removal.
// It may make a cycle, or break it up.
func (r *Reconciler) ofOrder(ctx context.Context, older, newer client.Object, q queue) {
	for name := range r.Gates.Known(ctx).Concerns(older, newer) {
		r.memory.restart(name)
		q.Add(ofFleet(name))
		r.bring(ctx, name, q)
	}
}

// bring adds requests for an add-on on the clusters with others that bring it along.
func (r *Reconciler) bring(ctx context.Context, name string, q queue) {
	order := r.Gates.Known(ctx)
	for _, d := range order.Dependents(name) {
		if !d.Installs {
			continue
		}
		err := r.AddOns.EachAddOn(ctx, func(addOn client.Object) {
			key := types.NamespacedName{Namespace: addOn.GetNamespace(), Name: name}
			q.Add(ctrlreconcile.Request{NamespacedName: key})
		}, client.MatchingFields{addonapi.IndexName: d.Name}, decode.Metadata)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding the clusters of an add-on", "addon", d.Name)
		}
	}
}

// ofWindow maps a window to the removal of the add-ons of which a cluster may be unselected.
func (r *Reconciler) ofWindow(context.Context, client.Object) []ctrl.Request {
	return r.fleets(r.memory.leaving())
}

// ofMovedCluster maps a cluster of which windows know something else to the removal of add-ons from it.
func (r *Reconciler) ofMovedCluster(_ context.Context, o client.Object) []ctrl.Request {
	return r.fleets(r.memory.waiting(o.GetName()))
}

func (r *Reconciler) fleets(addons []string) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(addons))
	for _, addon := range addons {
		requests = append(requests, ofFleet(addon))
	}
	return requests
}
