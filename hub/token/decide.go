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

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// intent is the purpose of a pass.
type intent int

const (
	// intentNone leaves everything as it is.
	intentNone intent = iota
	// intentKeep creates and repairs the infrastructure.
	intentKeep
	// intentRemove deletes the infrastructure and removes the condition.
	intentRemove
	// intentRefuse deletes the infrastructure and explains why in the condition.
	intentRefuse
)

// plan is the decision of a pass.
type plan struct {
	intent intent
	// steps come first: that of the ServiceAccount, or all removals.
	steps []step
	// grants let the agent of the cluster ask for tokens; they are run once the ServiceAccount is ours.
	grants []step
	// withdraw removes the grants; run instead when the ServiceAccount is that of others.
	withdraw []step
	// why is the reason of a refusal, for the condition.
	why string
}

// destroys reports whether the plan deletes something, also to make it again, or gives it an owner: Kubernetes collects
// what has an owner that does not exist.
func (p plan) destroys() bool {
	return slices.ContainsFunc(slices.Concat(p.steps, p.grants), func(s step) bool {
		return s.Verb == reconcile.Delete || s.Verb == reconcile.Replace || s.Verb == reconcile.Patch &&
			!equality.Semantic.DeepEqual(s.Before.GetOwnerReferences(), s.After.GetOwnerReferences())
	})
}

// decide returns the plan for the facts.
func decide(f facts) plan {
	switch {
	case f.addOn == nil, !f.accepted && !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have)}
	case !f.accepted:
		return plan{intent: intentRefuse, steps: removals(f.have), why: fmt.Sprintf("the hub does not accept cluster %s, "+
			"so its add-ons have no identity on the hub; set spec.hubAcceptsClient of ManagedCluster %s to true to accept it",
			f.key.Namespace, f.key.Namespace)}
	case addonapi.HookRuns(f.addOn):
		return plan{}
	case f.addOn.DeletionTimestamp != nil, !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have)}
	case f.foreign != nil:
		// What is there stays: the namespace may have lost its label by mistake.
		return plan{intent: intentRefuse, why: f.foreign.Error()}
	}
	p := plan{intent: intentKeep, withdraw: removals(f.have[1:])}
	for i, want := range wanted(f.key, f.addOn, f.owners) {
		if s := towards(f.have[i], want, f.addOn); i == 0 {
			p.steps = []step{s}
		} else {
			p.grants = append(p.grants, s)
		}
	}
	return p
}

// usesToken reports whether the agent has chosen the driver token for a credential of the hub's API server.
func usesToken(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return addonapi.HasDriver(addOn, tokens.Driver)
}

// removals returns the steps that delete objects; nil ones do not exist.
func removals(have []client.Object) []step {
	var steps []step
	for _, object := range have {
		if object != nil {
			steps = append(steps, planned(reconcile.Delete, object, nil))
		}
	}
	return steps
}

func planned(verb reconcile.Verb, before, after client.Object) step {
	return step{Step: reconcile.Step[client.Object]{Verb: verb, Before: before, After: after}}
}

// towards returns the step from an existing object, nil for none, to the desired one.
func towards(there, want client.Object, addOn *addonv1beta1.ManagedClusterAddOn) step {
	switch {
	case there == nil:
		return planned(reconcile.Create, nil, want)
	case !labelled(there, addOn.Name) && !ownedByName(there, addOn):
		return step{blocked: &takenError{there}}
	case there.GetDeletionTimestamp() != nil:
		return step{blocked: fmt.Errorf("waiting until %s, which is being deleted, is gone", reconcile.Describe(there))}
	case ofEarlier(there, addOn):
		return planned(reconcile.Replace, there, want)
	}
	after, possible := repaired(there, want)
	switch {
	case !possible:
		return planned(reconcile.Replace, there, want)
	case equality.Semantic.DeepEqual(there, after):
		return planned(reconcile.Keep, there, there)
	}
	return planned(reconcile.Patch, there, after)
}

// ownerKind is the kind of the owner of the infrastructure.
const ownerKind = "ManagedClusterAddOn"

// wanted returns the desired infrastructure: ServiceAccount, Role, RoleBinding. An add-on, if given, owns it.
func wanted(
	key types.NamespacedName, addOn *addonv1beta1.ManagedClusterAddOn, version addonapi.Wire,
) []client.Object {
	infrastructure := tokens.Render(key.Namespace, key.Name)
	all := []client.Object{infrastructure.ServiceAccount, infrastructure.Role, infrastructure.Binding}
	for _, object := range all {
		if addOn != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{addonapi.Owner(version, ownerKind, addOn)})
		}
	}
	return all
}

// labelled reports whether an object has the labels of the infrastructure of an add-on.
func labelled(object client.Object, addOn string) bool {
	have := object.GetLabels()
	for key, value := range tokens.Labels(addOn) {
		if have[key] != value {
			return false
		}
	}
	return true
}

// isOwner reports whether a reference names an add-on of this name, present or earlier.
func isOwner(owner metav1.OwnerReference, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return owner.Kind == ownerKind && owner.Name == addOn.Name
}

// ownedByName reports whether an object belongs to an add-on of this name.
func ownedByName(object client.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return isOwner(owner, addOn)
	})
}

// ofEarlier reports whether an object belongs to an earlier add-on of the same name. An object without an owner comes
// from a hub manager that sets none, and is adopted.
func ofEarlier(object client.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return ownedByName(object, addOn) && !slices.ContainsFunc(object.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return owner.UID == addOn.UID })
}

// repaired returns the desired object with the additions of others. False means that it cannot be patched and must be
// replaced.
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
