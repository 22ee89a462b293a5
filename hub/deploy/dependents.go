package deploy

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// guardDependents gives an add-on that lives the finalizer that it needs because others depend on it, or takes it, and
// returns the add-on as it is then. While a policy cannot be decoded, it stays as it is.
func (r *Reconciler) guardDependents(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	order, err := r.Gates.Order(ctx)
	if decode.IsUnknown(err) {
		return addOn, nil
	}
	if err != nil {
		return addOn, err
	}
	d := dependentFacts{knows: r.Gates != nil, any: len(order.Dependents(addOn.Name)) > 0}
	after := guardsDependents(addOn, d)
	if after == nil {
		return addOn, nil
	}
	if !d.any { // A cache that is behind may lack a policy.
		if order, err = r.live().gates.Order(ctx); err != nil {
			return addOn, err
		}
		if len(order.Dependents(addOn.Name)) > 0 {
			return addOn, nil // An event tells, and there is nothing to do then.
		}
	}
	if _, err := r.AddOns.PatchAddOn(ctx, addOn, after); err != nil {
		return addOn, err
	}
	return after, nil
}

// source is where it is read what depends on an add-on: the caches, or the API server.
type source struct {
	client.Reader
	gates *gate.Reader
}

func (r *Reconciler) cached() source { return source{r.Client, r.Gates} }

func (r *Reconciler) live() source { return source{r.Live, r.Gates.From(r.Live)} }

// observeDependents reads what depends on an add-on that is being deleted and is still on its cluster. The add-on
// waits for all that need it, and for each that goes, with all its works. On a cluster that goes, it waits for those
// that go before it or with it.
func (r *Reconciler) observeDependents(
	ctx context.Context, from source, addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster,
) (dependentFacts, error) {
	d := dependentFacts{knows: from.gates != nil}
	order, err := from.gates.Order(ctx)
	if decode.IsUnknown(err) {
		d.unknown = err.Error()
		return d, nil
	}
	if err != nil {
		return d, err
	}
	goes := cluster == nil || cluster.DeletionTimestamp != nil
	for _, dependent := range order.Dependents(addOn.Name) {
		d.any = true
		key := types.NamespacedName{Namespace: addOn.Namespace, Name: dependent.Name}
		other, err := r.AddOns.GetAddOnFrom(ctx, from, key)
		switch {
		case apierrors.IsNotFound(err):
			left, err := r.leftWorks(ctx, from, key)
			if err != nil {
				return d, err
			}
			if left > 0 {
				d.there = append(d.there, fmt.Sprintf("%s (%d ManifestWorks are left)", dependent.Name, left))
			}
			continue
		case decode.IsUnknown(err):
			d.there, d.addOns = append(d.there, dependent.Name+" (it cannot be decoded)"), true
			continue
		case err != nil:
			return d, err
		}
		last := goes && other.DeletionTimestamp.IsZero() && addonapi.CleanupPriority(other) > addonapi.CleanupPriority(addOn)
		if last || !dependent.Holds(other) {
			continue
		}
		d.there, d.addOns = append(d.there, dependent.Name), true
	}
	return d, nil
}

// isNeeded reports whether the agent of an add-on that is being deleted goes on for others: works that are left of them
// need nothing of it, and an agent keeps these as long as it likes. Where that is not known, they may be there.
func (r *Reconciler) isNeeded(
	ctx context.Context, from source, addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster,
) (bool, error) {
	if addOn == nil || addOn.DeletionTimestamp == nil || !slices.Contains(addOn.Finalizers, names.FinalizerDependents) {
		return false, nil
	}
	d, err := r.observeDependents(ctx, from, addOn, cluster)
	if decode.IsUnknown(err) || err == nil && (!d.knows || d.unknown != "") {
		return true, nil
	}
	return d.addOns, err
}

// leftWorks returns how many works there are of an add-on that is gone: those that it owned, and those on hosting
// clusters that are being deleted. Others write works with its labels, too: these count where the cluster consents.
func (r *Reconciler) leftWorks(ctx context.Context, from client.Reader, key types.NamespacedName) (int, error) {
	var own, hosted workv1.ManifestWorkList
	err := from.List(ctx, &own, client.InNamespace(key.Namespace), client.MatchingLabels{names.LabelAddonName: key.Name})
	if err != nil {
		return 0, fmt.Errorf("listing the ManifestWorks of add-on %s: %w", key, err)
	}
	if err := r.Client.List(ctx, &hosted, client.MatchingFields{indexHosted: key.String()}); err != nil {
		return 0, fmt.Errorf("listing the ManifestWorks of add-on %s on hosting clusters: %w", key, err)
	}
	left := 0
	for i := range own.Items {
		if isOwned(&own.Items[i], key.Name) {
			left++
		}
	}
	for i := range hosted.Items {
		work := &hosted.Items[i]
		if work.DeletionTimestamp == nil || work.Namespace == key.Namespace {
			continue
		}
		hosts, err := r.hosts(ctx, work.Namespace, key)
		if err != nil {
			return 0, err
		}
		if hosts {
			left++
		}
	}
	return left, nil
}

// hosts reports whether a cluster consents to host an add-on that is gone.
func (r *Reconciler) hosts(ctx context.Context, name string, key types.NamespacedName) (bool, error) {
	host := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, host)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil && !decode.IsUnknown(err): // The metadata of one that cannot be decoded is known.
		return false, fmt.Errorf("finding whether cluster %s hosts add-on %s: %w", name, key, err)
	}
	gone := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return r.Hosting.Consents(host, gone), nil
}

// isOwned reports whether an add-on of a name owns an object.
func isOwned(o metav1.Object, addOn string) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "ManagedClusterAddOn" && owner.Name == addOn {
			return true
		}
	}
	return false
}

// tellDependents records an Event on an add-on when it begins to wait for those that depend on it, or for others.
func (r *Reconciler) tellDependents(f deletionFacts, conditions []metav1.Condition) {
	says := meta.FindStatusCondition(conditions, names.ConditionAddOnDeleting)
	if r.Recorder == nil || says == nil || says.Reason != reasonWaitingForDependents {
		return
	}
	said := meta.FindStatusCondition(f.addOn.Status.Conditions, says.Type)
	if said == nil || said.Reason != says.Reason || said.Message != says.Message {
		r.Recorder.Eventf(f.addOn, nil, corev1.EventTypeNormal, eventWaitingForDependents, "Delete", "%s", says.Message)
	}
}

// watchDependents adds the watches of what depends on add-ons.
func (r *Reconciler) watchDependents(b *builder.Builder) *builder.Builder {
	deleted := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	return b.Watches(&policies.AddOnPolicy{}, handler.EnqueueRequestsFromMapFunc(r.ofOrder),
		builder.WithPredicates(gate.OrderChanged())).
		Watches(r.AddOns.WatchedAddOn(), handler.EnqueueRequestsFromMapFunc(r.ofDependent),
			builder.WithPredicates(predicate.Or[client.Object](deleted, reconcile.DeletionStarted()))).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(r.ofDependentWork),
			builder.WithPredicates(deleted))
}

// ofOrder maps a policy with other dependencies to the add-ons on which any depends, or did: it may make a cycle that
// they are in, or break it up.
func (r *Reconciler) ofOrder(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for name := range r.Gates.Known(ctx).Concerns(o) {
		requests = append(requests, r.addOnsNamed(ctx, name)...)
	}
	return requests
}

// ofDependent maps an add-on that goes to those on its cluster on which it depends.
func (r *Reconciler) ofDependent(ctx context.Context, o client.Object) []ctrl.Request {
	return r.beforeIt(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
}

// ofDependentWork maps a work that is gone to the add-ons on which its add-on depends.
func (r *Reconciler) ofDependentWork(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, of := range ofWork(ctx, o) {
		requests = append(requests, r.beforeIt(ctx, of.NamespacedName)...)
	}
	return requests
}

func (r *Reconciler) beforeIt(ctx context.Context, key types.NamespacedName) []ctrl.Request {
	return r.Gates.OnCluster(ctx, key.Namespace, r.Gates.Known(ctx).Depends(key.Name))
}
