package deploy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// planBindings plans the RoleBindings that grant the agent its roles on the hub, and deletes those of this cluster that
// are no longer wanted. account is the ServiceAccount of the agent; nil when it has none.
func planBindings(f facts, account *rbacv1.Subject) []bindingStep {
	n := namingOf(f, grants(f, distinct(f.setup.Permissions), account))
	var steps []bindingStep
	for _, permission := range n.all {
		key := n.keyOf(permission)
		n.taken[key] = true
		desired := desiredBinding(f, key, permission)
		if s, needed := stepOfBinding(n.existing[key], desired); needed {
			steps = append(steps, s)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(n.existing), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if binding := n.existing[key]; !n.taken[key] && (ofCluster(binding, f) || isLeft(binding, f)) {
			steps = append(steps, bindingStep{Verb: reconcile.Delete, Before: binding})
		}
	}
	return steps
}

// mayHaveRoles reports whether the agent of an add-on may have roles on the hub: as long as the hub accepts its
// cluster, and the add-on exists, or the hooks of its deletion run, or others go before it.
func mayHaveRoles(f facts) bool {
	return f.addOn != nil && isAccepted(f.cluster) &&
		(f.addOn.DeletionTimestamp == nil || f.needed || addonapi.HookRuns(f.addOn, names.FinalizerDependents))
}

// dropBindings deletes RoleBindings. One that a finalizer of its writer keeps goes no sooner for being deleted again.
func dropBindings(bindings []*rbacv1.RoleBinding) []bindingStep {
	steps := make([]bindingStep, 0, len(bindings))
	for _, binding := range bindings {
		if binding.DeletionTimestamp != nil {
			continue
		}
		steps = append(steps, bindingStep{Verb: reconcile.Delete, Before: binding})
	}
	return steps
}

// keepFormer lets an agent keep what it has from RoleBindings for all clusters, by its own RoleBindings, while it is
// unknown what it asks for, or its ServiceAccount is not ready. Of the latter, only what it asks for.
func keepFormer(f facts) []bindingStep {
	var permissions []addon.Permission
	asked, unknown := distinct(f.setup.Permissions), f.setupErr != nil || f.withheld != nil
	for _, binding := range f.former {
		if binding.Namespace != f.cluster.Name && (unknown || isWanted(asked, binding)) {
			permissions = append(permissions, addon.Permission{
				Namespace: binding.Namespace, RoleRef: binding.RoleRef, Subjects: binding.Subjects,
			})
		}
	}
	var steps []bindingStep
	n := namingOf(f, grants(f, permissions, nil))
	for _, permission := range n.all {
		key := n.keyOf(permission)
		if there := n.existing[key]; there != nil && there.RoleRef != permission.RoleRef {
			key = hashedKey(key, permission.RoleRef) // It stays what it is.
		}
		n.taken[key] = true
		if n.existing[key] == nil {
			steps = append(steps, bindingStep{Verb: reconcile.Create, After: desiredBinding(f, key, permission)})
		}
	}
	return steps
}

// dropUnasked deletes the RoleBindings of roles that the add-on does not ask for any more, whatever its agent waits
// for.
func dropUnasked(f facts) []bindingStep {
	asked := distinct(f.setup.Permissions)
	var unasked []*rbacv1.RoleBinding
	for _, binding := range f.bindings {
		if (ofCluster(binding, f) || isLeft(binding, f)) && !isWanted(asked, binding) {
			unasked = append(unasked, binding)
		}
	}
	return dropBindings(unasked)
}

// grant is a role to be bound.
type grant struct {
	addon.Permission
	// own marks a binding for this one cluster outside of its namespace.
	own bool
}

// grants returns the roles to be bound, each to the agent of this cluster alone: what the agents of all clusters had
// together would stay with that of a cluster that was denied, as long as its certificate is valid. A ServiceAccount is
// one more subject.
func grants(f facts, permissions []addon.Permission, account *rbacv1.Subject) []grant {
	groups := csr.AddonGroups(f.cluster.Name, f.addOn.Name)
	all := make([]grant, 0, len(permissions))
	for _, permission := range permissions {
		var subjects []rbacv1.Subject
		for _, subject := range permission.Subjects {
			if subject.Kind == rbacv1.GroupKind && subject.Name == groups[1] {
				subject.Name = groups[0]
			}
			if !slices.Contains(subjects, subject) {
				subjects = append(subjects, subject)
			}
		}
		// A ClusterRoleBinding has no namespace that says whose a ServiceAccount is: a tenant may have made it.
		if account != nil && !permission.AllNamespaces {
			subjects = append(subjects, *account)
		}
		permission.Subjects = subjects
		all = append(all, grant{Permission: permission, own: permission.Namespace != f.cluster.Name})
	}
	return all
}

// ofCluster reports whether a binding belongs to this add-on on this cluster alone, and not to an earlier add-on of its
// name.
func ofCluster(binding *rbacv1.RoleBinding, f facts) bool {
	if binding.Namespace == f.cluster.Name {
		return ours(binding, f.addOn)
	}
	return isAgents(binding) && binding.Labels[names.LabelAddonName] == f.addOn.Name &&
		binding.Labels[names.LabelClusterName] == f.cluster.Name
}

// isLeft reports whether a binding in the namespace of the cluster is left by an earlier add-on of this name: the
// agent, which is the same user, would keep what it grants until Kubernetes collects it.
func isLeft(binding *rbacv1.RoleBinding, f facts) bool {
	return binding.Namespace == f.cluster.Name && isAgents(binding) && binding.DeletionTimestamp == nil &&
		works.IsLeft(binding, f.addOn)
}

// distinct merges permissions that yield the same binding, and sets what the API server would default. The result is
// as the API server stores it, so that it is not a difference.
func distinct(permissions []addon.Permission) []addon.Permission {
	var kept []addon.Permission
	for _, permission := range permissions {
		permission.RoleRef.APIGroup = cmp.Or(permission.RoleRef.APIGroup, rbacv1.GroupName)
		at := slices.IndexFunc(kept, func(other addon.Permission) bool {
			return other.Namespace == permission.Namespace && other.RoleRef == permission.RoleRef &&
				other.AllNamespaces == permission.AllNamespaces
		})
		if at < 0 {
			at = len(kept)
			kept = append(kept, addon.Permission{
				Namespace: permission.Namespace, RoleRef: permission.RoleRef, AllNamespaces: permission.AllNamespaces,
			})
		}
		for _, subject := range permission.Subjects {
			if subject.Kind == rbacv1.GroupKind || subject.Kind == rbacv1.UserKind {
				subject.APIGroup = cmp.Or(subject.APIGroup, rbacv1.GroupName)
			}
			if !slices.Contains(kept[at].Subjects, subject) {
				kept[at].Subjects = append(kept[at].Subjects, subject)
			}
		}
	}
	return kept
}

// isWanted reports whether permissions ask for a binding.
func isWanted(permissions []addon.Permission, binding *rbacv1.RoleBinding) bool {
	return slices.ContainsFunc(permissions, func(p addon.Permission) bool {
		return p.Namespace == binding.Namespace && p.RoleRef == binding.RoleRef
	})
}

// naming names the RoleBindings of what is granted.
type naming struct {
	facts
	all []grant
	// existing are the RoleBindings that exist, and taken the names that are given.
	existing map[types.NamespacedName]*rbacv1.RoleBinding
	taken    map[types.NamespacedName]bool
}

func namingOf(f facts, all []grant) naming {
	n := naming{
		facts: f, all: all, taken: map[types.NamespacedName]bool{},
		existing: make(map[types.NamespacedName]*rbacv1.RoleBinding, len(f.bindings)),
	}
	for _, binding := range f.bindings {
		n.existing[client.ObjectKeyFromObject(binding)] = binding
	}
	return n
}

// keyOf names a binding. The name contains only the kind of the role, as OCM says (docs/reference/hub.md, "Hub
// permissions"), and that of the cluster in other namespaces, unless the role of another permission has that name. Then
// a hash of the role is appended. A role keeps the name that it has.
func (n naming) keyOf(permission grant) types.NamespacedName {
	plain := types.NamespacedName{
		Namespace: permission.Namespace,
		Name:      "open-cluster-management:" + n.addOn.Name + ":" + strings.ToLower(permission.RoleRef.Kind) + ":agent",
	}
	switch {
	case permission.AllNamespaces:
		plain.Name = everywhereName(n.addOn.Name, n.cluster.Name)
	case permission.own:
		plain.Name += ":cluster:" + n.cluster.Name
	}
	hashed := hashedKey(plain, permission.RoleRef)
	for _, key := range []types.NamespacedName{plain, hashed} {
		if there := n.existing[key]; there != nil && there.RoleRef == permission.RoleRef && !n.taken[key] {
			return key
		}
	}
	there := n.existing[plain]
	switch {
	case n.taken[plain]:
		return hashed
	case there == nil:
		return plain
	case isGranted(n.all, permission, there.RoleRef):
		return hashed
	}
	return plain
}

// everywhereName is the name of the ClusterRoleBinding of an agent, as OCM proposes it.
func everywhereName(addOn, cluster string) string {
	return "open-cluster-management:" + addOn + ":clusterrole:" + cluster + ":agent"
}

// hashedKey is the name of a binding with a hash of its role.
func hashedKey(plain types.NamespacedName, role rbacv1.RoleRef) types.NamespacedName {
	sum := sha256.Sum256([]byte(role.Kind + "/" + role.Name))
	return types.NamespacedName{Namespace: plain.Namespace, Name: plain.Name + ":" + hex.EncodeToString(sum[:4])}
}

// isGranted reports whether another role has to be bound where a permission is.
func isGranted(all []grant, permission grant, role rbacv1.RoleRef) bool {
	return slices.ContainsFunc(all, func(other grant) bool {
		return other.Namespace == permission.Namespace && other.own == permission.own && other.RoleRef == role
	})
}

func desiredBinding(f facts, key types.NamespacedName, permission grant) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{names.LabelAddonName: f.addOn.Name, names.LabelAddonTemplate: ""},
		},
		Subjects: permission.Subjects,
		RoleRef:  permission.RoleRef,
	}
	if key.Namespace == f.cluster.Name {
		binding.OwnerReferences = []metav1.OwnerReference{addonapi.Owner(f.owners, ownerKind, f.addOn)}
		return binding
	}
	if permission.own {
		binding.Labels[names.LabelClusterName] = f.cluster.Name
	}
	// An owner reference cannot cross namespaces, so the owner of a binding elsewhere is the add-on as a whole.
	for _, owner := range f.addOn.OwnerReferences {
		if owner.Kind == "ClusterManagementAddOn" && owner.Name == f.addOn.Name {
			owner.Controller, owner.BlockOwnerDeletion = nil, nil
			binding.OwnerReferences = []metav1.OwnerReference{owner}
		}
	}
	return binding
}

// stepOfBinding returns the step from the existing binding, nil for none, to the desired one.
func stepOfBinding(there, desired *rbacv1.RoleBinding) (bindingStep, bool) {
	if there == nil {
		return bindingStep{Verb: reconcile.Create, After: desired}, true
	}
	if there.RoleRef != desired.RoleRef {
		return bindingStep{Verb: reconcile.Replace, Before: there, After: desired}, true
	}
	after := there.DeepCopy()
	after.Labels = reconcile.WithEntries(after.Labels, desired.Labels)
	after.OwnerReferences = reconcile.WithOwners(bindingOwners(after, desired), desired.OwnerReferences)
	after.Subjects = desired.Subjects
	if equality.Semantic.DeepEqual(there, after) {
		return bindingStep{}, false
	}
	return bindingStep{Verb: reconcile.Patch, Before: there, After: after}, true
}

// bindingOwners returns the owners of an existing binding that stay. One that was for all clusters and becomes that of
// one add-on must not outlive that add-on.
func bindingOwners(there, desired *rbacv1.RoleBinding) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(there.OwnerReferences), func(owner metav1.OwnerReference) bool {
		return owner.Kind == "ClusterManagementAddOn" && slices.ContainsFunc(desired.OwnerReferences,
			func(own metav1.OwnerReference) bool { return own.Kind == "ManagedClusterAddOn" })
	})
}

// ownerKind is the kind of the owner of what is made for an add-on on one cluster.
const ownerKind = "ManagedClusterAddOn"

// ours reports whether an object belongs to this add-on, and not to an earlier one of the same name.
func ours(object metav1.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.UID == addOn.UID
	})
}
