package token

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts are the inputs of a pass. The objects belong to the cache and must not be changed.
type facts struct {
	now time.Time
	// key is the namespace of the cluster and the name of the add-on.
	key types.NamespacedName
	// addOn is nil when it does not exist, or is unknown.
	addOn *addonv1beta1.ManagedClusterAddOn
	// unknown is why the add-on could not be read, on a cluster that is not accepted; nil when it could.
	unknown error
	// accepted reports whether the hub accepts the cluster; false without a ManagedCluster.
	accepted bool
	// have are the existing objects with our labels, in the order of wanted; nil for a missing one.
	have []client.Object
	// foreign is why the namespace is not that of the cluster; nil when it is.
	foreign error
}

// observe reads the facts. A read error ends the pass, as nothing is deleted on a guess, but for one: on a cluster that
// is not accepted no add-on has an identity, whatever else the add-on says.
func (r *Reconciler) observe(ctx context.Context, reader client.Reader, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), key: key}
	cluster, err := reconcile.Get(ctx, reader, types.NamespacedName{Name: key.Namespace}, &clusterv1.ManagedCluster{})
	if err != nil {
		return facts{}, err
	}
	f.accepted = cluster != nil && cluster.Spec.HubAcceptsClient
	if f.addOn, err = r.AddOns.GetAddOnFrom(ctx, reader, key); !reconcile.ObjectGone(err) {
		f.unknown = err
	}
	if f.unknown != nil && f.accepted {
		return facts{}, f.unknown
	}
	for _, object := range wanted(key, nil) {
		there, err := reconcile.Get(ctx, reader, client.ObjectKeyFromObject(object), emptyLike(object))
		if err != nil {
			return facts{}, err
		}
		if there != nil && !labelled(there, key.Name) {
			there = nil
		}
		f.have = append(f.have, there)
	}
	namespace, err := reconcile.Get(ctx, reader, types.NamespacedName{Name: key.Namespace}, reconcile.Namespace())
	f.foreign = names.CheckNamespace(namespace, key.Namespace)
	return f, err
}
