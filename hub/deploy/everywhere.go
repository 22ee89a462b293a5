package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// unnamedRole is a role that nobody names. A right on it is one on all roles, which is no consent to any of them:
// administrators of OCM gave this account such rights for other reasons.
const unnamedRole = "open-cluster-management:no-role"

// everywhere returns a ClusterRoleBinding as a RoleBinding without a namespace; they share memory.
func everywhere(binding *rbacv1.ClusterRoleBinding) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: binding.ObjectMeta, Subjects: binding.Subjects, RoleRef: binding.RoleRef}
}

// ofEverywhere is the inverse of everywhere; nil stays nil.
func ofEverywhere(binding *rbacv1.RoleBinding) *rbacv1.ClusterRoleBinding {
	if binding == nil {
		return nil
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, Subjects: binding.Subjects, RoleRef: binding.RoleRef}
}

// anyBinding returns a RoleBinding or ClusterRoleBinding as a RoleBinding; false for any other object.
func anyBinding(object client.Object) (*rbacv1.RoleBinding, bool) {
	switch typed := object.(type) {
	case *rbacv1.RoleBinding:
		return typed, true
	case *rbacv1.ClusterRoleBinding:
		return everywhere(typed), true
	}
	return nil, false
}

// indexEverywhere finds the ClusterRoleBindings of one add-on on one cluster.
const indexEverywhere = "spokelet.io/cluster-role-binding"

// everywhereKeys returns the add-on and the cluster of a ClusterRoleBinding that has the name of ours; nil for those of
// others, whatever their labels say.
func everywhereKeys(o client.Object) []string {
	labels := o.GetLabels()
	name := everywhereName(labels[names.LabelAddonName], labels[names.LabelClusterName])
	if o.GetName() != name && !strings.HasPrefix(o.GetName(), name+":") {
		return nil
	}
	return addonapi.BindingKeys(o)
}

// listBindings lists the bindings of one add-on on one cluster. They must not be changed.
func (r *Reconciler) listBindings(ctx context.Context, key types.NamespacedName) ([]*rbacv1.RoleBinding, error) {
	all, err := addonapi.ListBindings(ctx, r.Client, key)
	if err != nil {
		return nil, err
	}
	everywhere, err := r.listEverywhere(ctx, key)
	return append(all, everywhere...), err
}

// listEverywhere lists the ClusterRoleBindings of one add-on on one cluster. They must not be changed.
func (r *Reconciler) listEverywhere(ctx context.Context, key types.NamespacedName) ([]*rbacv1.RoleBinding, error) {
	if !r.AllNamespaces {
		return nil, nil
	}
	var list rbacv1.ClusterRoleBindingList
	err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingFields{indexEverywhere: key.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the ClusterRoleBindings of add-on %s: %w", key, err)
	}
	all := make([]*rbacv1.RoleBinding, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, everywhere(&list.Items[i]))
	}
	return all, nil
}

// leaveEverywhere deletes the ClusterRoleBindings of an add-on that is not made of a template any more. The program
// that makes it now takes over its RoleBindings, and knows nothing of these.
func (r *Reconciler) leaveEverywhere(ctx context.Context, f facts) error {
	if !f.byOthers {
		return nil
	}
	left, err := r.listEverywhere(ctx, client.ObjectKeyFromObject(f.addOn))
	left = slices.DeleteFunc(left, func(binding *rbacv1.RoleBinding) bool { return !isAgents(binding) })
	if err != nil || len(left) == 0 {
		return err
	}
	var versions [2]string // in the cache and on the API server; empty where there is no definition
	for i, from := range []client.Reader{r.Client, r.Live} {
		key := types.NamespacedName{Name: f.addOn.Name}
		definition, err := reconcile.Get(ctx, from, key, r.AddOns.WatchedClusterManagementAddOn())
		switch {
		case err != nil:
			return err
		case definition != nil:
			versions[i] = definition.GetResourceVersion()
		}
	}
	if versions[0] != versions[1] { // It may be made of a template again.
		return reconcile.Behind(addonv1beta1.GroupName, "clustermanagementaddons", f.addOn.Name)
	}
	return errors.Join(r.runBindings(ctx, dropBindings(left))...)
}

// runBindings runs steps and returns the error of each.
func (r *Reconciler) runBindings(ctx context.Context, steps []bindingStep) []error {
	var failed []error
	for _, s := range steps {
		if !isEverywhere(s.Before) && !isEverywhere(s.After) {
			failed = append(failed, runAll(ctx, r.bindingWriter(), []bindingStep{s})...)
			continue
		}
		failed = append(failed, r.runEverywhere(ctx, s))
	}
	return failed
}

// givesNothing reports whether a step gives no subject a role that it does not have.
func givesNothing(s bindingStep) bool {
	switch s.Verb {
	case reconcile.Delete, reconcile.Keep:
		return true
	case reconcile.Patch:
		adds := func(subject rbacv1.Subject) bool { return !slices.Contains(s.Before.Subjects, subject) }
		return s.Before.RoleRef == s.After.RoleRef && !slices.ContainsFunc(s.After.Subjects, adds)
	default:
		return false
	}
}

// runEverywhere runs the step of a ClusterRoleBinding. Every write that gives anything needs the consent. A policy asks
// for it as well; this is for hubs without policies, where the other consents would be enough for the API server.
func (r *Reconciler) runEverywhere(ctx context.Context, s bindingStep) error {
	if s.Verb == reconcile.Replace { // The former role goes, whether anybody consented to the next one or not.
		if err := r.runEverywhere(ctx, bindingStep{Verb: reconcile.Delete, Before: s.Before}); err != nil {
			return err
		}
		s = bindingStep{Verb: reconcile.Create, After: s.After}
	}
	if !givesNothing(s) {
		if err := r.consented(ctx, s.After.RoleRef.Name); err != nil {
			return err
		}
	}
	writer := reconcile.Writer[*rbacv1.ClusterRoleBinding]{
		Client: r.Bindings, Live: r.Live,
		Adopt: func(want, found *rbacv1.ClusterRoleBinding) ([]reconcile.Step[*rbacv1.ClusterRoleBinding], error) {
			return nil, checkOwner(want, found)
		},
	}
	_, err := writer.Run(ctx, reconcile.Step[*rbacv1.ClusterRoleBinding]{
		Verb: s.Verb, Before: ofEverywhere(s.Before), After: ofEverywhere(s.After),
	})
	if s.Verb == reconcile.Patch && givesNothing(s) && apierrors.IsForbidden(err) {
		// Kubernetes lets nobody patch a binding who may not bind its role, also to take a subject away. It may be deleted.
		return r.runEverywhere(ctx, bindingStep{Verb: reconcile.Delete, Before: s.Before})
	}
	return err
}

// consented returns an error unless an administrator consented that a role is bound in all namespaces, by its name.
func (r *Reconciler) consented(ctx context.Context, role string) error {
	for _, asked := range []struct {
		name string
		want bool
	}{{role, true}, {unnamedRole, false}} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + strings.Replace(r.account(), "/", ":", 1),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verbEverywhere, Group: rbacv1.GroupName, Resource: "clusterroles", Name: asked.name,
			},
		}}
		if err := r.Client.Create(ctx, review); err != nil {
			return fmt.Errorf("asking whether role %s may be bound in all namespaces: %w", role, err)
		}
		if review.Status.Allowed != asked.want {
			return &notConsentedError{role: role, account: r.account(), all: asked.name == unnamedRole}
		}
	}
	return nil
}
