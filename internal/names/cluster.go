package names

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// conditionHubAccepted is the condition of a ManagedCluster that says whether the hub accepts it.
const conditionHubAccepted = "HubAcceptedManagedCluster"

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

// CheckNewCluster is CheckCluster for a cluster that is about to be created. It also refuses names whose namespaces
// belong to Kubernetes, OpenShift, the hub, or everybody. A cluster that has such a name stays. The policy in
// manifests/hub/policies/clusters.yaml has the same rule; a test compares the two.
func CheckNewCluster(name string) error {
	if err := CheckCluster(name); err != nil {
		return err
	}
	prefixed := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if name == metav1.NamespaceDefault || name == "openshift" ||
		slices.ContainsFunc([]string{"kube-", "openshift-", "open-cluster-management"}, prefixed) {
		return fmt.Errorf("the name %q is reserved: the namespace of this cluster would be one of Kubernetes, of OpenShift "+
			"or of the hub; create the cluster under another name", name)
	}
	return nil
}

// LabelOCMCluster on a namespace names its cluster, as people and tools of OCM label namespaces before an import.
const LabelOCMCluster = "cluster.open-cluster-management.io/managedCluster"

// CheckNamespace returns why a namespace is not that of a cluster, in words for its administrator, with the command
// that makes it so; nil when it is. A namespace that was there before the cluster belongs to others, and nothing is
// granted in it, until it has the label of the cluster. A nil namespace does not exist.
func CheckNamespace(namespace *metav1.PartialObjectMetadata, cluster string) error {
	switch {
	case namespace == nil:
		return fmt.Errorf("there is no namespace %s", cluster)
	case namespace.Labels[LabelClusterName] == cluster:
		return nil
	}
	return fmt.Errorf("namespace %[1]s is not labelled as that of cluster %[1]s, so nothing is granted or written in "+
		"it; if nothing of others is there, an administrator makes it the namespace of the cluster: kubectl label "+
		"namespace %[1]s %[2]s=%[1]s",
		cluster, LabelClusterName)
}

// AcceptedBefore reports whether a cluster that is not accepted now was accepted earlier, which means that it was
// denied. The annotation decides: an admission policy keeps agents from removing it. The condition, which an agent may
// remove, is for clusters that a hub accepted before the annotation existed. The type ManagedCluster is not named here,
// because programs on managed clusters import this package, and need nothing of the API.
func AcceptedBefore(cluster metav1.Object, conditions []metav1.Condition) bool {
	if _, ok := cluster.GetAnnotations()[AnnotationAcceptedOn]; ok {
		return true
	}
	return meta.FindStatusCondition(conditions, conditionHubAccepted) != nil
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

// isRoleOfTheHub reports whether a role is one of an installation that no add-on is ever bound to.
func isRoleOfTheHub(role string) bool {
	switch role {
	case "open-cluster-management:bootstrap", "open-cluster-management:cluster-manager-work-executor-admin:webhook":
		return true
	}
	return strings.HasPrefix(role, RolePrefixHub) || strings.HasPrefix(role, RolePrefixCluster)
}

// CheckPermission returns why no role of this name can be bound for an add-on in this namespace, no matter who
// consented, in words for the author of the add-on; nil when it can. home is the namespace of the hub manager.
func CheckPermission(namespace, role, home string) error {
	switch namespace {
	case metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease:
		return fmt.Errorf("namespace %s belongs to Kubernetes, and no role is bound there for an add-on: move what the "+
			"agent needs to a namespace of the add-on", namespace)
	case home, NamespaceHub:
		return fmt.Errorf("namespace %s belongs to the hub manager, and no role is bound there for an add-on: move what the "+
			"agent needs to a namespace of the add-on", namespace)
	}
	if isRoleOfTheHub(role) {
		return fmt.Errorf("role %s belongs to the hub manager and is never bound for an add-on: create a role with the "+
			"rights that the agent needs, and grant it to ServiceAccount %s/%s", role, NamespaceHub, ServiceAccountAddons)
	}
	return nil
}

// CheckEverywhere returns why no role of this name can be bound for an add-on in all namespaces, no matter who
// consented, in words for the author of the add-on; nil when it can.
func CheckEverywhere(role string) error {
	if isRoleOfTheHub(role) || role == "cluster-admin" || strings.HasPrefix(role, "system:") {
		return fmt.Errorf("role %s belongs to Kubernetes or to the hub manager and is never bound for an add-on in all "+
			"namespaces: create a role with the rights that the agent needs", role)
	}
	// The author of a template chooses the name, and an administrator is told to use it in a command.
	if !IsPlainRole(role) {
		return fmt.Errorf("role %.100q is not bound for an add-on in all namespaces: its name has other characters than "+
			"letters, digits and :._@+-; create a role with another name", role)
	}
	return nil
}

// IsPlainRole reports whether the name of a role means nothing to a shell, so that a command may contain it.
func IsPlainRole(role string) bool {
	return strings.Trim(role, roleCharacters) == "" && !strings.HasPrefix(role, "-") // Else it is an option.
}

// roleCharacters are those that names of roles are made of, and that mean nothing to a shell.
const roleCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._@+-"
