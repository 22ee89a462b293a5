package executor

import (
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// ServiceAccount is an executor: the ServiceAccount of the spoke whose permissions a work has.
type ServiceAccount struct{ Namespace, Name string }

// Of reads spec.executor; the texts of its errors are those of docs/reference/work.md, "Executors".
func Of(spec *workv1.ManifestWorkExecutor) (ServiceAccount, error) {
	subject := spec.Subject
	switch {
	case subject.Type != workv1.ExecutorSubjectTypeServiceAccount:
		return ServiceAccount{}, errors.New("only support ServiceAccount type for the executor")
	case subject.ServiceAccount == nil:
		return ServiceAccount{}, errors.New("the executor service account is nil")
	}
	return ServiceAccount{Namespace: subject.ServiceAccount.Namespace, Name: subject.ServiceAccount.Name}, nil
}

// String returns the user name of the ServiceAccount.
func (s ServiceAccount) String() string { return "system:serviceaccount:" + s.Namespace + ":" + s.Name }

// groups returns the groups that the API server gives the ServiceAccount.
func (s ServiceAccount) groups() []string {
	return []string{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:" + s.Namespace}
}

// Verbs are the verbs that an executor needs for one object, separated by commas.
type Verbs string

const (
	// VerbsRead are for an object that is only read.
	VerbsRead Verbs = "get"
	// VerbsApply are for an object that is applied and that stays when its work is deleted.
	VerbsApply Verbs = "create,update,patch,get"
	// VerbsOwn are for an object that is applied and that is deleted with its work.
	VerbsOwn = VerbsApply + ",delete"
)

// list returns the verbs one by one.
func (v Verbs) list() []string { return strings.Split(string(v), ",") }

// Has reports whether the verbs include one.
func (v Verbs) Has(verb string) bool { return slices.Contains(v.list(), verb) }

// Question is everything that a decision depends on, apart from RBAC itself. A decision is valid for the same question
// only.
type Question struct {
	// Object holds what the executor needs the verbs for, Version the version of its API.
	Object  manifest.ID
	Version string
	// Desired digests the manifest and how it is applied.
	Desired manifest.Digest
	// Verbs are what the executor needs.
	Verbs Verbs
}

// resource returns the resource of the object in the version of the question.
func (q Question) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: q.Object.Group, Version: q.Version, Resource: q.Object.Resource}
}

// GrantsPermissions reports whether applying the object grants permissions, which the executor must have itself.
func (q Question) GrantsPermissions() bool {
	groups := []string{rbacv1.GroupName, groupOpenShift}
	return q.Verbs != VerbsRead && slices.Contains(groups, q.Object.Group) &&
		slices.Contains([]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, q.Object.Resource)
}

// MustTry reports whether the executor tries each write of the object first: of what grants permissions, of admission
// policies and trust bundles, for which the API server asks who writes them (for the right to read the params of a
// policy, or to attest for a signer), and of the kinds that Kubernetes does not serve itself, because an API server
// that it forwards them to may decide by who asks.
func (q Question) MustTry() bool {
	return q.GrantsPermissions() || q.Verbs != VerbsRead && !slices.Contains(groupsWithoutTrial(), q.Object.Group)
}

// recordsRequester reports whether the API server writes into the object who created it, which is the agent, and others
// grant something by that.
func (q Question) recordsRequester() bool {
	return q.Verbs != VerbsRead && q.Object.Group == "certificates.k8s.io" &&
		q.Object.Resource == "certificatesigningrequests"
}

// groupOpenShift is the group of the roles and bindings of OpenShift, which are written to RBAC for a client that asks.
const groupOpenShift = "authorization.openshift.io"

// groupsWithoutTrial are the groups that kube-apiserver serves itself without a look at who writes, beyond RBAC.
func groupsWithoutTrial() []string {
	return []string{
		"", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io",
		"autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
		"flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", rbacv1.GroupName, "resource.k8s.io",
		"scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}
}

// boundRole returns the role that the manifest of a binding refers to; false when the object is not a binding.
func (q Question) boundRole(object *unstructured.Unstructured) (roleKey, bool) {
	if q.Object.Resource != "rolebindings" && q.Object.Resource != "clusterrolebindings" {
		return roleKey{}, false
	}
	kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	return roleOf(rbacv1.RoleRef{Kind: kind, Name: name}, q.Object.Namespace), true
}
