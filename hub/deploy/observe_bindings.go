package deploy

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// bindingFacts are the facts about the roles of an add-on on one cluster. Reading them costs what belongs to the add-on
// on that cluster, however many other add-ons and clusters there are.
type bindingFacts struct {
	// bindings are the RoleBindings of the add-on on this cluster, and those for all clusters in the namespaces of its
	// permissions.
	bindings []*rbacv1.RoleBinding
	// obsolete are the RoleBindings for all clusters that no spec of the add-on asks for any more, or that are in the
	// namespace of a cluster.
	obsolete []*rbacv1.RoleBinding
	// refused is why the permissions cannot be set; nil when they can.
	refused error
}

// observeBindings reads the facts about the roles of an add-on on one cluster.
func (r *Reconciler) observeBindings(
	ctx context.Context, key types.NamespacedName, agent addon.Agent, a answers,
) (bindingFacts, error) {
	var b bindingFacts
	bindings, err := addonapi.ListBindings(ctx, r.Client, key)
	if err != nil {
		return b, err
	}
	shared, err := r.listShared(ctx, key.Name)
	if err != nil {
		return b, err
	}
	for _, binding := range shared {
		if binding.Namespace != key.Namespace { // That of the cluster is among the others already.
			bindings = append(bindings, binding)
		}
	}
	b.bindings = bindings
	if a.setupErr != nil {
		return b, nil //nolint:nilerr // the answer of the agent is a fact, which the caller has
	}
	permissions := distinct(a.setup.Permissions)
	b.refused = r.checkPermissions(ctx, key, permissions)
	b.obsolete, err = r.obsolete(ctx, key, agent, permissions, shared)
	return b, err
}

// listShared lists the RoleBindings of an add-on for all clusters.
func (r *Reconciler) listShared(ctx context.Context, addOn string) ([]*rbacv1.RoleBinding, error) {
	var list rbacv1.RoleBindingList
	err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexSharedBinding: addOn})
	if err != nil {
		return nil, fmt.Errorf("listing the RoleBindings of add-on %s for all clusters: %w", addOn, err)
	}
	return reconcile.Pointers(list.Items), nil
}

// checkPermissions refuses permissions in the namespace of another cluster, because the agents of all clusters would
// get them, and those that nobody can grant.
func (r *Reconciler) checkPermissions(
	ctx context.Context, key types.NamespacedName, permissions []addon.Permission,
) error {
	for _, permission := range permissions {
		if permission.Namespace == "" {
			return &addon.InvalidError{Message: fmt.Sprintf("the add-on asks for %s %s without a namespace",
				permission.RoleRef.Kind, permission.RoleRef.Name)}
		}
		if err := names.CheckPermission(permission.Namespace, permission.RoleRef.Name, r.Home); err != nil {
			return &addon.InvalidError{Message: err.Error()}
		}
		if permission.Namespace == key.Namespace {
			continue
		}
		other, err := r.clusterOf(ctx, permission.Namespace)
		switch {
		case err != nil:
			return err
		case other != nil:
			return &addon.InvalidError{Message: fmt.Sprintf("the add-on asks for %s %s in namespace %s, which is the namespace "+
				"of a managed cluster: agents of other clusters get nothing there; use type CurrentCluster",
				permission.RoleRef.Kind, permission.RoleRef.Name, permission.Namespace)}
		}
	}
	return nil
}

// obsolete returns those of the RoleBindings for all clusters that must go: those in the namespace of a cluster, and
// those that neither the permissions of this cluster nor any spec of the add-on asks for. The specs are read only if
// there is such a binding. If they cannot be read, only bindings that no add-on may have are obsolete.
func (r *Reconciler) obsolete(
	ctx context.Context, key types.NamespacedName, agent addon.Agent, permissions []addon.Permission,
	shared []*rbacv1.RoleBinding,
) ([]*rbacv1.RoleBinding, error) {
	var gone, unwanted []*rbacv1.RoleBinding
	for _, binding := range shared {
		if _, template := binding.Labels[names.LabelAddonTemplate]; !template {
			continue
		}
		cluster, err := r.clusterOf(ctx, binding.Namespace)
		switch {
		case err != nil:
			return nil, err
		case binding.Namespace == key.Namespace && isWanted(permissions, binding):
			// It becomes the binding of this add-on on this cluster.
		case cluster != nil:
			gone = append(gone, binding)
		case !isWanted(permissions, binding):
			unwanted = append(unwanted, binding)
		}
	}
	if len(unwanted) == 0 {
		return gone, nil
	}
	specs, err := agent.SharedPermissions(ctx)
	if err != nil {
		log.FromContext(ctx).Info("bindings for all clusters stay, as it is not known what the add-on asks for",
			"addon", key.Name, "cause", err.Error())
	}
	specs = distinct(specs)
	return append(gone, slices.DeleteFunc(unwanted, func(binding *rbacv1.RoleBinding) bool {
		allowed := names.CheckPermission(binding.Namespace, binding.RoleRef.Name, r.Home) == nil
		return isWanted(specs, binding) || (err != nil && allowed)
	})...), nil
}
