package token

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts are the inputs of a pass. The objects belong to the cache and must not be changed.
type facts struct {
	now time.Time
	// key is the namespace of the cluster and the name of the add-on.
	key types.NamespacedName
	// addOn is nil when it does not exist.
	addOn *addonv1beta1.ManagedClusterAddOn
	// accepted reports whether the hub accepts the cluster; false without a ManagedCluster.
	accepted bool
	// have are the existing objects with our labels, in the order of wanted; nil for a missing one.
	have []client.Object
	// granted are the RoleBindings of the ServiceAccount in other namespaces; listed only when it is deleted.
	granted []client.Object
}

// observe reads the facts. Any read error ends the pass: nothing is deleted on a guess.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), key: key}
	var err error
	f.addOn, err = r.AddOns.GetAddOn(ctx, key)
	if client.IgnoreNotFound(err) != nil {
		return facts{}, err
	}
	cluster, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: key.Namespace}, &clusterv1.ManagedCluster{})
	if err != nil {
		return facts{}, err
	}
	f.accepted = cluster != nil && cluster.Spec.HubAcceptsClient
	for _, object := range wanted(key, nil) {
		there, err := reconcile.Get(ctx, r.Client, client.ObjectKeyFromObject(object), emptyLike(object))
		if err != nil {
			return facts{}, err
		}
		if there != nil && !labelled(there, key.Name) {
			there = nil
		}
		f.have = append(f.have, there)
	}
	if f.addOn == nil || f.addOn.DeletionTimestamp != nil || !usesToken(f.addOn) {
		f.granted, err = r.listGranted(ctx, key)
	}
	return f, err
}

// listGranted lists the bindings for this add-on on this cluster in other namespaces. Package deploy creates them; an
// owner reference cannot cross namespaces.
func (r *Reconciler) listGranted(ctx context.Context, key types.NamespacedName) ([]client.Object, error) {
	var list rbacv1.RoleBindingList
	err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexBinding: key.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the RoleBindings of the ServiceAccount of add-on %s: %w", key, err)
	}
	var granted []client.Object
	for i := range list.Items {
		binding := &list.Items[i]
		if _, template := binding.Labels[names.LabelAddonTemplate]; template {
			granted = append(granted, binding)
		}
	}
	return granted, nil
}
