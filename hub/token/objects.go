package token

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tokens "github.com/spokelet/spokelet/internal/token"
)

// ownerKind is the kind of the owner of the infrastructure.
const ownerKind = "ManagedClusterAddOn"

// wanted returns the infrastructure as it shall be: ServiceAccount, Role, RoleBinding. An add-on, if given, owns it.
func wanted(key types.NamespacedName, addOn *addonv1beta1.ManagedClusterAddOn) []client.Object {
	infrastructure := tokens.Render(key.Namespace, key.Name)
	all := []client.Object{infrastructure.ServiceAccount, infrastructure.Role, infrastructure.Binding}
	for _, object := range all {
		if addOn != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: addonv1beta1.GroupVersion.String(), Kind: ownerKind, Name: addOn.Name, UID: addOn.UID,
			}})
		}
	}
	return all
}

// labelled reports whether an object says that it is infrastructure of an add-on.
func labelled(object client.Object, addOn string) bool {
	have := object.GetLabels()
	for key, value := range tokens.Labels(addOn) {
		if have[key] != value {
			return false
		}
	}
	return true
}

// isOwner reports whether a reference is to an add-on of this name, be it this one or an earlier one.
func isOwner(owner metav1.OwnerReference, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return owner.Kind == ownerKind && owner.Name == addOn.Name
}

// ownedByName reports whether an object belongs to an add-on of this name.
func ownedByName(object client.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return isOwner(owner, addOn)
	})
}

// ofEarlier reports whether an object belongs to an earlier add-on of the same name. One that belongs to none was made
// by a hub manager that sets no owners, and is taken over.
func ofEarlier(object client.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return ownedByName(object, addOn) && !slices.ContainsFunc(object.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return owner.UID == addOn.UID })
}

// repaired returns an object as it shall be, with what others may add to it. False means that it cannot be changed into
// that and must be made anew.
func repaired(there, want client.Object) (client.Object, bool) {
	after, isObject := there.DeepCopyObject().(client.Object)
	if !isObject {
		return nil, false
	}
	labels := maps.Clone(there.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	after.SetLabels(labels)
	owners := slices.Clone(there.GetOwnerReferences())
	for _, owner := range want.GetOwnerReferences() {
		owned := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
		if !owned {
			owners = append(owners, owner)
		}
	}
	after.SetOwnerReferences(owners)
	switch typed := after.(type) {
	case *corev1.ServiceAccount:
		return after, true
	case *rbacv1.Role:
		role, isRole := want.(*rbacv1.Role)
		if isRole {
			typed.Rules = role.Rules
		}
		return after, isRole
	case *rbacv1.RoleBinding:
		binding, isBinding := want.(*rbacv1.RoleBinding)
		if isBinding {
			typed.Subjects = binding.Subjects
		}
		return after, isBinding && typed.RoleRef == binding.RoleRef
	}
	return nil, false
}

// same reports whether a repair changes nothing.
func same(there, after client.Object) bool { return equality.Semantic.DeepEqual(there, after) }

// emptyLike returns an empty object of the same kind.
func emptyLike(object client.Object) client.Object {
	switch object.(type) {
	case *rbacv1.Role:
		return &rbacv1.Role{}
	case *rbacv1.RoleBinding:
		return &rbacv1.RoleBinding{}
	}
	return &corev1.ServiceAccount{}
}

// kindOf names the kind of an object.
func kindOf(object client.Object) string {
	switch object.(type) {
	case *rbacv1.Role:
		return "Role"
	case *rbacv1.RoleBinding:
		return "RoleBinding"
	}
	return "ServiceAccount"
}

// nameOf names an object in messages.
func nameOf(object client.Object) string {
	return fmt.Sprintf("%s %s/%s", kindOf(object), object.GetNamespace(), object.GetName())
}
