package addonapi

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Readers of nothing but metadata and placements do without a conversion: a conversion copies the whole object.

// PeekAddOn reads one ManagedClusterAddOn in the version of the wire; nil when it does not exist. The object belongs to
// the cache and must not be changed.
func (c Client) PeekAddOn(ctx context.Context, key types.NamespacedName) (client.Object, error) {
	return c.peek(ctx, key, c.WatchedAddOn())
}

// PeekClusterManagementAddOn reads one ClusterManagementAddOn in the version of the wire; nil when it does not exist.
// The object belongs to the cache and must not be changed.
func (c Client) PeekClusterManagementAddOn(ctx context.Context, name string) (client.Object, error) {
	return c.peek(ctx, types.NamespacedName{Name: name}, c.WatchedClusterManagementAddOn())
}

func (c Client) peek(ctx context.Context, key types.NamespacedName, into client.Object) (client.Object, error) {
	err := c.Client.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // absent is an answer
	case err != nil:
		return nil, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return into, nil
}

// EachAddOn calls visit with ManagedClusterAddOns in the version of the wire, in no order. The objects belong to the
// cache and must not be changed.
func (c Client) EachAddOn(ctx context.Context, visit func(client.Object), opts ...client.ListOption) error {
	if c.Wire == WireBeta {
		return c.each(ctx, &addonv1beta1.ManagedClusterAddOnList{}, visit, opts)
	}
	return c.each(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, visit, opts)
}

// EachClusterManagementAddOn calls visit with ClusterManagementAddOns like EachAddOn.
func (c Client) EachClusterManagementAddOn(
	ctx context.Context, visit func(client.Object), opts ...client.ListOption,
) error {
	if c.Wire == WireBeta {
		return c.each(ctx, &addonv1beta1.ClusterManagementAddOnList{}, visit, opts)
	}
	return c.each(ctx, &addonv1alpha1.ClusterManagementAddOnList{}, visit, opts)
}

func (c Client) each(
	ctx context.Context, list client.ObjectList, visit func(client.Object), opts []client.ListOption,
) error {
	if err := c.Client.List(ctx, list, uncopied(opts)...); err != nil {
		return fmt.Errorf("listing %T: %w", list, err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok {
			visit(object)
		}
		return nil
	})
}

// IsAddOn reports whether a watched object is a ManagedClusterAddOn.
func IsAddOn(wire client.Object) bool {
	switch wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn, *addonv1beta1.ManagedClusterAddOn:
		return true
	}
	return false
}

// ConfigsOf returns the configurations in the spec of a watched ManagedClusterAddOn; nil for any other object.
func ConfigsOf(wire client.Object) []addonv1beta1.AddOnConfig {
	switch typed := wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		if len(typed.Spec.Configs) == 0 {
			return nil
		}
		return AddOnToBeta(typed).Spec.Configs
	case *addonv1beta1.ManagedClusterAddOn:
		return slices.Clone(typed.Spec.Configs)
	}
	return nil
}

// Strategy is the part of an install strategy that decides where an add-on is installed.
type Strategy struct {
	// ByPlacements reports whether placements install the add-on, rather than people.
	ByPlacements bool
	// Placements are the listed placements, in their order; none when people install the add-on.
	Placements []types.NamespacedName
}

// StrategyOf returns the install strategy of a ClusterManagementAddOn in any version, without a conversion; the zero
// Strategy for any other object.
func StrategyOf(o client.Object) Strategy {
	switch typed := o.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		if typed.Spec.InstallStrategy.Type != addonv1alpha1.AddonInstallStrategyPlacements {
			return Strategy{}
		}
		keys := make([]types.NamespacedName, len(typed.Spec.InstallStrategy.Placements))
		for i := range keys {
			ref := typed.Spec.InstallStrategy.Placements[i].PlacementRef
			keys[i] = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		}
		return Strategy{ByPlacements: true, Placements: keys}
	case *addonv1beta1.ClusterManagementAddOn:
		if !InstalledByPlacements(typed) {
			return Strategy{}
		}
		keys := make([]types.NamespacedName, len(typed.Spec.InstallStrategy.Placements))
		for i := range keys {
			ref := typed.Spec.InstallStrategy.Placements[i].PlacementRef
			keys[i] = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		}
		return Strategy{ByPlacements: true, Placements: keys}
	}
	return Strategy{}
}
