package names

import (
	"fmt"
	"slices"
	"strings"

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

// CheckCluster says why no cluster of this name can be part of the fleet, in words for its author; nil when it can. The
// name must do as that of a namespace, and must not make the access of this cluster that of all clusters or of the hub.
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

// reservedFor says what a reserved name stands for.
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
