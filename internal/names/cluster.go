package names

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// RolePrefixCluster starts the names of all roles and bindings of clusters on the hub.
const RolePrefixCluster = "open-cluster-management:managedcluster:"

// CheckCluster says why no cluster of this name can be part of the fleet, in words for its author; nil when it can. The
// name must do as that of a namespace, and must not make the access of this cluster that of all clusters or of the hub.
func CheckCluster(name string) error {
	switch name {
	case "managed-clusters":
		return fmt.Errorf("the name %q is reserved: the group of this cluster would be the group that all clusters are "+
			"in; create the cluster under another name", name)
	case "registration", "work":
		return fmt.Errorf("the name %q is reserved: the ClusterRole of this cluster would be the ClusterRole %s that all "+
			"clusters share; create the cluster under another name", name, RolePrefixCluster+name)
	case metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease", NamespaceHub, NamespaceBootstrap:
		return fmt.Errorf("the name %q is reserved: the namespace of this cluster would be one that the hub itself works "+
			"in; create the cluster under another name", name)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be the name of the namespace of this cluster: %s; create the cluster under "+
			"another name", name, strings.Join(problems, "; "))
	}
	return nil
}
