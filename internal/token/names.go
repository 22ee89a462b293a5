package token

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
)

const (
	// Driver is the driver of an agent that takes tokens, as it is in status.registrations.
	Driver = "token"
	// KeyToken is where a credential Secret holds its token.
	KeyToken = "token"
	// DefaultExpirationSeconds is the requested lifetime unless it is configured: a year.
	DefaultExpirationSeconds int64 = 365 * 24 * 60 * 60
	// MinExpirationSeconds is the shortest lifetime that the API server grants: ten minutes.
	MinExpirationSeconds int64 = 10 * 60

	// LabelName on the infrastructure names its add-on.
	LabelName = "addon.open-cluster-management.io/name"
	// LabelInfrastructure with value "true" marks the infrastructure.
	LabelInfrastructure = "addon.open-cluster-management.io/token-infrastructure"

	agentSuffix  = "-agent"
	roleSuffix   = "-token-role"
	userPrefix   = "system:serviceaccount:"
	subTokenRule = "serviceaccounts/token"
)

// ServiceAccountName returns the name of an add-on's ServiceAccount in the cluster's namespace on the hub.
func ServiceAccountName(addon string) string { return addon + agentSuffix }

// User returns the user name of that ServiceAccount, the only subject that a registration by token can have.
func User(cluster, addon string) string {
	return userPrefix + cluster + ":" + ServiceAccountName(addon)
}

// RoleName returns the name of the Role and of the RoleBinding that let the cluster's agent ask for tokens.
func RoleName(addon string) string { return addon + roleSuffix }

// Labels returns the labels of everything that Render makes.
func Labels(addon string) map[string]string {
	return map[string]string{LabelName: addon, LabelInfrastructure: "true"}
}

// Infrastructure is the set of objects that the hub keeps for one add-on of one cluster.
type Infrastructure struct {
	// ServiceAccount is the identity of the add-on on the hub.
	ServiceAccount *corev1.ServiceAccount
	// Role allows to ask for tokens of that ServiceAccount and of no other.
	Role *rbacv1.Role
	// Binding gives the Role to the agents of the cluster.
	Binding *rbacv1.RoleBinding
}

// Render returns the infrastructure as it shall be (docs/reference/registration.md, "Access of a cluster" and
// "Tokens"), without owners.
func Render(cluster, addon string) Infrastructure {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: cluster, Name: name, Labels: Labels(addon)}
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	return Infrastructure{
		ServiceAccount: &corev1.ServiceAccount{ObjectMeta: meta(ServiceAccountName(addon))},
		Role: &rbacv1.Role{
			ObjectMeta: meta(RoleName(addon)),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{corev1.GroupName}, Resources: []string{subTokenRule},
				ResourceNames: []string{ServiceAccountName(addon)}, Verbs: []string{"create"},
			}},
		},
		Binding: &rbacv1.RoleBinding{
			ObjectMeta: meta(RoleName(addon)),
			Subjects:   []rbacv1.Subject{group(csr.ClusterGroup(cluster)), group(csr.ClusterGroupIAM(cluster))},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: RoleName(addon)},
		},
	}
}
