// Package credentials_test runs the parts of an agent that get credentials, package join and package addon, against a
// real control plane, which is hub and managed cluster at once: requests are approved by a person (the tests) and
// issued by kube-controller-manager, and the agents are users with the RBAC that we ship and that a hub grants.
package credentials_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// site is one control plane with all that we ship and the identity that agents have on it.
type site struct {
	*suite.Plane
	// agent is the identity of agents on their own cluster.
	agent *rest.Config
}

// What the tests share.
var (
	// home is hub and managed cluster of most tests.
	home *site
	// second is another control plane. Its controllers sign for half a minute only.
	second *site
	// bootstrap is the identity with which agents join home.
	bootstrap *rest.Config
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		webhook := startConverter(t)
		home = newSite(t, webhook, sandbox.Options{Name: "credentials"})
		second = newSite(t, webhook, sandbox.Options{Name: "second", SigningDuration: 30 * time.Second})
		bootstrap = home.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	})
}

// newSite starts a control plane and prepares it.
func newSite(t suite.T, webhook converter, options sandbox.Options) *site {
	crds, err := sandbox.CRDsWithConversion(webhook.config())
	require.NoError(t, err)
	s := &site{Plane: suite.Start(t, options, crds, manifests.Hub(), manifests.Klusterlet(), clusterRoles())}
	s.withdrawWorkRights(t)
	s.agent = s.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	return s
}

// withdrawWorkRights takes from the agent what it may do for ManifestWorks: those rights cover Secrets too, and an
// operator may take them away, so that credentials must do with the rules that are there for them.
func (s *site) withdrawWorkRights(t suite.T) {
	for _, name := range []string{"agent", "aggregate", "execution-admin"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:klusterlet-work:" + name},
		}
		require.NoError(t, s.Client.Delete(t.Context(), binding))
	}
}

// clusterRoles holds what a hub grants to all accepted clusters in their namespaces (docs/reference/registration.md,
// "Access of a cluster").
func clusterRoles() [][]byte {
	return [][]byte{[]byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:managedcluster:registration"}
rules:
- {apiGroups: [addon.open-cluster-management.io], resources: [managedclusteraddons], verbs: [get, list, watch]}
- {apiGroups: [addon.open-cluster-management.io], resources: [managedclusteraddons/status], verbs: [patch, update]}
`)}
}

// acceptance holds what a hub grants to one accepted cluster.
func acceptance(cluster string) []byte {
	return fmt.Appendf(nil, `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {open-cluster-management.io/cluster-name: %[1]s}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:managedcluster:%[1]s"}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get, list, watch]}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  resourceNames: [%[1]s]
  verbs: [get, list, update, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/status]
  resourceNames: [%[1]s]
  verbs: [patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "open-cluster-management:managedcluster:%[1]s"}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: "open-cluster-management:managedcluster:%[1]s"
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:open-cluster-management:%[1]s"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "open-cluster-management:managedcluster:%[1]s:registration", namespace: %[1]s}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: open-cluster-management:managedcluster:registration
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:open-cluster-management:%[1]s"}
`, cluster)
}
