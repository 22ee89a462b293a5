package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// observe reads the facts about one add-on on one cluster, all of them from the cache.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: key.Namespace}
	var err error
	f.management, err = r.AddOns.GetManagement(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if f.addon, err = r.AddOns.GetAddOn(ctx, key); client.IgnoreNotFound(err) != nil {
		return f, err
	}
	cluster := types.NamespacedName{Name: key.Namespace}
	if f.managed, err = get(ctx, r.Client, cluster, &clusterv1.ManagedCluster{}); err != nil {
		return f, err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if f.namespace, err = get(ctx, r.Client, cluster, namespace); err != nil {
		return f, err
	}
	f.placements, err = r.placements(ctx, f.management)
	return f, err
}

// placements reads the Placements of an install strategy and their decisions.
func (r *Reconciler) placements(
	ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn,
) ([]placementFacts, error) {
	if cma.Spec.InstallStrategy.Type != addonv1beta1.AddonInstallStrategyPlacements {
		return nil, nil
	}
	all := make([]placementFacts, 0, len(cma.Spec.InstallStrategy.Placements))
	for _, ref := range cma.Spec.InstallStrategy.Placements {
		p := placementFacts{key: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
		var err error
		if p.placement, err = get(ctx, r.Client, p.key, &clusterv1beta1.Placement{}); err != nil {
			return nil, err
		}
		var pages clusterv1beta1.PlacementDecisionList
		if err := r.Client.List(ctx, &pages, client.InNamespace(ref.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingLabels{names.LabelPlacement: ref.Name}); err != nil {
			return nil, fmt.Errorf("listing the decisions of Placement %s: %w", p.key, err)
		}
		for i := range pages.Items {
			p.pages = append(p.pages, &pages.Items[i])
		}
		all = append(all, p)
	}
	return all, nil
}

// get reads one object; nil when there is none.
func get[T client.Object](ctx context.Context, c client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	err := c.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return into, nil
}
