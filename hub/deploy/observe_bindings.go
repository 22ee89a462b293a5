package deploy

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// observeBindings reads the facts about the roles of an add-on on one cluster.
func (r *Reconciler) observeBindings(ctx context.Context, agent addon.Agent, f facts) (bindingFacts, error) {
	key := client.ObjectKeyFromObject(f.addOn)
	var b bindingFacts
	var err error
	if b.bindings, err = r.listBindings(ctx, key); err != nil {
		return b, err
	}
	if addonapi.HasDriver(f.addOn, token.Driver) {
		if b.accountOurs, err = r.observeAccount(ctx, f.addOn); err != nil {
			return b, err
		}
	}
	if f.setupErr == nil && f.withheld == nil { // Else nobody knows which roles the agent is to have.
		permissions := distinct(f.setup.Permissions)
		b.refused = r.checkPermissions(ctx, f.foreign, key, permissions)
		f.bindings = b.bindings
		b.obsolete, err = r.obsolete(ctx, agent, f, permissions)
	}
	return b, err
}

// observeAccount reports whether the ServiceAccount of an add-on is ours.
func (r *Reconciler) observeAccount(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	reader := r.Accounts
	if reader == nil {
		reader = r.Client
	}
	key := types.NamespacedName{Namespace: addOn.Namespace, Name: token.RoleName(addOn.Name)}
	grant, err := reconcile.Get(ctx, reader, key, &rbacv1.RoleBinding{})
	return grant != nil && grant.Labels[token.LabelName] == addOn.Name && ours(grant, addOn), err
}

// observeEnded lists the RoleBindings of an add-on on a cluster where its agent may have no roles. Those that an add-on
// owns which is gone are left to Kubernetes, as its works are: each one that we deleted at the same time would take
// three requests.
func (r *Reconciler) observeEnded(
	ctx context.Context, key types.NamespacedName, f facts,
) ([]*rbacv1.RoleBinding, error) {
	if mayHaveRoles(f) {
		return nil, nil
	}
	all, err := r.listBindings(ctx, key)
	gone := f.addOn == nil && isAccepted(f.cluster)
	return slices.DeleteFunc(all, func(binding *rbacv1.RoleBinding) bool {
		return !isAgents(binding) || gone && isCollected(binding, key, f.owners)
	}), err
}

// isCollected reports whether Kubernetes deletes an object when the add-on of that key is gone. It finds owners only in
// versions that it serves, as that in which we write them.
func isCollected(object client.Object, key types.NamespacedName, version addonapi.Wire) bool {
	owners := object.GetOwnerReferences()
	return object.GetNamespace() == key.Namespace && len(owners) == 1 && owners[0].Name == key.Name &&
		owners[0].Kind == ownerKind && owners[0].APIVersion == addonapi.OwnerVersion(version)
}

// confirmEnded reads from the API server that an agent that is about to lose its roles may have none: a cache may show
// the cluster before it was accepted, or not have it or the add-on yet. On a cluster that is not accepted the add-on is
// not asked for, because nobody may be able to read it.
func (r *Reconciler) confirmEnded(ctx context.Context, key types.NamespacedName, f facts) error {
	if len(dropBindings(f.ended)) == 0 {
		return nil
	}
	var err error
	if f.cluster, err = r.liveCluster(ctx, key.Namespace); err != nil || !isAccepted(f.cluster) {
		return err
	}
	f.addOn, err = r.AddOns.GetAddOnFrom(ctx, r.Live, key)
	switch {
	case reconcile.ObjectGone(err):
		return nil
	case err != nil:
		return err
	}
	if f.needed, err = r.isNeeded(ctx, r.live(), f.addOn, f.cluster); err != nil {
		return err
	}
	if mayHaveRoles(f) {
		return reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", key.String())
	}
	return nil
}

// listFormer lists the RoleBindings of an add-on for all clusters.
func (r *Reconciler) listFormer(ctx context.Context, key types.NamespacedName) ([]*rbacv1.RoleBinding, error) {
	var list rbacv1.RoleBindingList
	err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexSharedBinding: key.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the RoleBindings of add-on %s for all clusters: %w", key.Name, err)
	}
	return slices.DeleteFunc(reconcile.Pointers(list.Items), func(binding *rbacv1.RoleBinding) bool {
		return !isAgents(binding)
	}), nil
}

// checkPermissions refuses permissions in the namespace of another cluster, because the agents of all clusters would
// get them, and those that nobody can grant. In a namespace that was there before its cluster, nothing is granted until
// an administrator consents; foreign says so.
func (r *Reconciler) checkPermissions(
	ctx context.Context, foreign error, key types.NamespacedName, permissions []addon.Permission,
) error {
	r.asksFor.set(key, permissions)
	if len(permissions) == 0 {
		return nil
	}
	if foreign != nil {
		return foreign
	}
	for _, permission := range permissions {
		if permission.AllNamespaces {
			if err := r.checkEverywhere(permission); err != nil {
				return err
			}
			continue
		}
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
		ofOther, err := r.isOfCluster(ctx, permission.Namespace)
		switch {
		case err != nil:
			return err
		case ofOther:
			return &addon.InvalidError{Message: fmt.Sprintf("the add-on asks for %s %s in namespace %s, which is the "+
				"namespace of a managed cluster: agents of other clusters get nothing there; use type CurrentCluster",
				permission.RoleRef.Kind, permission.RoleRef.Name, permission.Namespace)}
		}
	}
	return nil
}

// checkEverywhere refuses a permission in all namespaces that nobody can grant.
func (r *Reconciler) checkEverywhere(permission addon.Permission) error {
	if !r.AllNamespaces || permission.Namespace != "" || permission.RoleRef.Kind != "ClusterRole" {
		return &addon.InvalidError{Message: fmt.Sprintf("the add-on asks for %s %s in all namespaces: only the hub manager "+
			"binds a ClusterRole so, for a template", permission.RoleRef.Kind, permission.RoleRef.Name)}
	}
	if err := names.CheckEverywhere(permission.RoleRef.Name); err != nil {
		return &addon.InvalidError{Message: err.Error()}
	}
	return nil
}

// observeNamespace returns why the namespace of a cluster is not its own, for the author of an add-on; nil when it is.
// A user who could create the ManagedCluster chose the name.
func (r *Reconciler) observeNamespace(ctx context.Context, cluster string) (foreign, err error) {
	namespace, err := r.namespace(ctx, cluster)
	switch {
	case err != nil:
		return nil, err
	case namespace == nil:
		return &addon.NotReadyError{Message: "there is no namespace " + cluster}, nil
	}
	if err := names.CheckNamespace(namespace, cluster); err != nil {
		return &addon.InvalidError{Message: err.Error()}, nil
	}
	return nil, nil
}

// namespace reads the metadata of a namespace; nil when there is none.
func (r *Reconciler) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, reconcile.Namespace())
}

// elsewhere returns the RoleBindings of the add-on on this cluster that are in other namespaces.
func elsewhere(f facts) []*rbacv1.RoleBinding {
	return slices.DeleteFunc(slices.Clone(f.bindings), func(binding *rbacv1.RoleBinding) bool {
		return binding.Namespace == f.addOn.Namespace || !isAgents(binding)
	})
}

// isOfCluster reports whether a namespace is that of a cluster. Its label says so: everybody with a bootstrap
// credential may create a ManagedCluster of that name.
func (r *Reconciler) isOfCluster(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil // It is that of a ClusterRoleBinding.
	}
	namespace, err := r.namespace(ctx, name)
	return isOfCluster(namespace, name), err
}

// isOfCluster reports whether there is a namespace, and it is that of the cluster of a name.
func isOfCluster(namespace *metav1.PartialObjectMetadata, cluster string) bool {
	return namespace != nil && names.CheckNamespace(namespace, cluster) == nil
}

// obsolete returns those of the RoleBindings that must go: those in the namespace of another cluster, and, of those for
// all clusters, what neither the permissions of this cluster nor any spec of the add-on asks for. The specs are read
// only if there is such a binding. If they cannot be read, only bindings that no add-on may have are obsolete.
func (r *Reconciler) obsolete(
	ctx context.Context, agent addon.Agent, f facts, permissions []addon.Permission,
) ([]*rbacv1.RoleBinding, error) {
	var gone, unwanted []*rbacv1.RoleBinding
	for _, binding := range append(elsewhere(f), f.former...) {
		here := binding.Namespace == f.addOn.Namespace
		ofOther, err := r.isOfCluster(ctx, binding.Namespace)
		switch {
		case err != nil:
			return nil, err
		case here && isWanted(permissions, binding):
			// It becomes the binding of this add-on on this cluster.
		case here, ofOther:
			gone = append(gone, binding)
		case binding.Labels[names.LabelClusterName] == "" && !isWanted(permissions, binding):
			unwanted = append(unwanted, binding)
		}
	}
	if len(unwanted) == 0 {
		return gone, nil
	}
	specs, err := agent.SharedPermissions(ctx)
	if err != nil {
		log.FromContext(ctx).Info("bindings for all clusters stay, as it is not known what the add-on asks for",
			"addon", f.addOn.Name, "cause", err.Error())
	}
	specs = distinct(specs)
	return append(gone, slices.DeleteFunc(unwanted, func(binding *rbacv1.RoleBinding) bool {
		allowed := names.CheckPermission(binding.Namespace, binding.RoleRef.Name, r.Home) == nil
		return isWanted(specs, binding) || (err != nil && allowed)
	})...), nil
}
