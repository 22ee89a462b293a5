package deploy

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// verbEverywhere is the right of the account of add-ons on a ClusterRole by which an administrator consents that it is
// bound in all namespaces. The other ways to consent say nothing about that: they are for the namespaces of clusters.
const verbEverywhere = "bind-in-all-namespaces"

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

// notConsentedError says that no administrator consented that a role is bound in all namespaces.
type notConsentedError struct{ role, account string }

// Error implements error. The commands are those of an administrator of the hub.
func (e *notConsentedError) Error() string {
	account := strings.Replace(e.account, "/", ":", 1)
	return fmt.Sprintf("no administrator of the hub consented to that role in all namespaces, those of Kubernetes, of "+
		"the hub manager and of all other clusters among them. An administrator who wants that for every add-on whose "+
		"template asks for it consents by: kubectl create clusterrole bind-%[1]s-everywhere --verb=bind,%[2]s "+
		"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=%[1]s && kubectl create clusterrolebinding "+
		"bind-%[1]s-everywhere --clusterrole=bind-%[1]s-everywhere --serviceaccount=%[3]s", e.role, verbEverywhere, account)
}

// listBindings lists the bindings of one add-on on one cluster. They must not be changed.
func (r *Reconciler) listBindings(ctx context.Context, key types.NamespacedName) ([]*rbacv1.RoleBinding, error) {
	all, err := addonapi.ListBindings(ctx, r.Client, key)
	if err != nil || !r.AllNamespaces {
		return all, err
	}
	var list rbacv1.ClusterRoleBindingList
	err = r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingFields{indexEverywhere: key.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the ClusterRoleBindings of add-on %s: %w", key, err)
	}
	for i := range list.Items {
		all = append(all, everywhere(&list.Items[i]))
	}
	return all, nil
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

// runEverywhere runs the step of a ClusterRoleBinding. Every write but a deletion needs the consent. A policy asks for
// it as well; this is for hubs without policies, where the other consents would be enough for the API server.
func (r *Reconciler) runEverywhere(ctx context.Context, s bindingStep) error {
	if s.Verb == reconcile.Replace { // The former role goes, whether anybody consented to the next one or not.
		if err := r.runEverywhere(ctx, bindingStep{Verb: reconcile.Delete, Before: s.Before}); err != nil {
			return err
		}
		s = bindingStep{Verb: reconcile.Create, After: s.After}
	}
	if s.Verb != reconcile.Delete && s.Verb != reconcile.Keep {
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
			return &notConsentedError{role: role, account: r.account()}
		}
	}
	return nil
}
