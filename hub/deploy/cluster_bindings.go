package deploy

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A ClusterRoleBinding gives the agent of one cluster a role in all namespaces. In facts and plans it is a RoleBinding
// without a namespace, so that it is named, repaired, and taken like every other binding of the add-on on this cluster.

// verbEverywhere is the right of the account of add-ons on a ClusterRole by which an administrator consents that it is
// bound in all namespaces. The other ways to consent say nothing about that: they are for the namespaces of clusters.
const verbEverywhere = "bind-in-all-namespaces"

// unnamedRole is a role that nobody names. A right on it is one on all roles, which is no consent to any of them:
// administrators of OCM gave this account such rights for other reasons.
const unnamedRole = "open-cluster-management:no-role"

// isEverywhere reports whether a binding is a ClusterRoleBinding.
func isEverywhere(binding *rbacv1.RoleBinding) bool { return binding != nil && binding.Namespace == "" }

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
