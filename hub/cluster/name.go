package cluster

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/internal/names"
)

// checkName says why no cluster of this name can be accepted; nil when it can.
func checkName(name string) error {
	switch name {
	case "managed-clusters":
		return fmt.Errorf("the name %q is reserved: the group of this cluster would be the group that all clusters are "+
			"in; create the cluster under another name", name)
	case "registration", "work":
		return fmt.Errorf("the name %q is reserved: the ClusterRole of this cluster would be the ClusterRole %s that all "+
			"clusters share; create the cluster under another name", name, rolePrefix+name)
	case metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease", names.NamespaceHub, names.NamespaceBootstrap:
		return fmt.Errorf("the name %q is reserved: the namespace of this cluster would be one that the hub itself works "+
			"in; create the cluster under another name", name)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be the name of the namespace of this cluster: %s; create the cluster under "+
			"another name", name, strings.Join(problems, "; "))
	}
	return nil
}
