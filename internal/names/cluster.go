package names

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// RolePrefixCluster starts the names of all roles and bindings of clusters on the hub.
const RolePrefixCluster = "open-cluster-management:managedcluster:"

// ReservedClusters returns the names that no cluster can have because the hub uses them, ordered. The policy in
// manifests/hub/policies/clusters.yaml has the same list; a test compares the two.
func ReservedClusters() []string {
	return []string{
		"kube-node-lease", metav1.NamespacePublic, metav1.NamespaceSystem, "managed-clusters", NamespaceBootstrap,
		NamespaceHub, "registration", "work",
	}
}

// CheckCluster returns why no cluster of this name can be part of the fleet, in words for its author; nil when it can.
// The name must do as that of a namespace, and must not make the access of this cluster that of all clusters or of the
// hub.
func CheckCluster(name string) error {
	if slices.Contains(ReservedClusters(), name) {
		return fmt.Errorf("the name %q is reserved: %s; create the cluster under another name", name, reservedFor(name))
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be the name of the namespace of this cluster: %s; create the cluster under "+
			"another name", name, strings.Join(problems, "; "))
	}
	return nil
}

// reservedFor returns the meaning of a reserved name.
func reservedFor(name string) string {
	switch name {
	case "managed-clusters":
		return "the group of this cluster would be the group that all clusters are in"
	case "registration", "work":
		return "the ClusterRole of this cluster would be the ClusterRole " + RolePrefixCluster + name +
			" that all clusters share"
	}
	return "the namespace of this cluster would be one that the hub itself works in"
}

// RolePrefixHub starts the names of the roles of the hub manager itself.
const RolePrefixHub = "open-cluster-management:spokelet-hub"

// rolesOfTheHub are, besides those that a prefix tells, the roles of an installation that no add-on is ever bound to.
var rolesOfTheHub = []string{ //nolint:gochecknoglobals // a list of names that nothing changes
	"open-cluster-management:bootstrap", "open-cluster-management:cluster-manager-work-executor-admin:webhook",
}

// CheckPermission returns why no role of this name can be bound for an add-on in this namespace, whoever consented, in
// words for the author of the add-on; nil when it can. home is the namespace of the hub manager.
func CheckPermission(namespace, role, home string) error {
	switch namespace {
	case metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease:
		return fmt.Errorf("namespace %s belongs to Kubernetes, and no role is bound there for an add-on: move what the "+
			"agent needs to a namespace of the add-on", namespace)
	case home, NamespaceHub:
		return fmt.Errorf("namespace %s belongs to the hub manager, and no role is bound there for an add-on: move what the "+
			"agent needs to a namespace of the add-on", namespace)
	}
	own := strings.HasPrefix(role, RolePrefixHub) || strings.HasPrefix(role, RolePrefixCluster) ||
		slices.Contains(rolesOfTheHub, role)
	if own {
		return fmt.Errorf("role %s belongs to the hub manager and is never bound for an add-on: create a role with the "+
			"rights that the agent needs, and grant it to ServiceAccount %s/%s", role, NamespaceHub, ServiceAccountAddons)
	}
	return nil
}
