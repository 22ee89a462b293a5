// Package faults_test injects faults, one after the other and some at a time, on a hub with our hub manager and a
// managed cluster with our agent, and asks "kubectl spokelet why", as it is built and as a person with the roles that are
// shipped for it, for the first cause. Each fault has the code that the command must name, and ends where that is cheap:
// then the command must say that all is well. docs/operations/plugin.md has the table of the faults.
//
// Clusters without an agent are played: the tests write what an agent would write. So are the pods of the cluster with
// an agent: there is no kubelet.
package faults_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// near is the managed cluster with an agent.
const near = "store-1"

// played is in the names of pods that the tests play; all others run at once.
const played = "played"

// world is what the tests run on.
var world struct {
	hub, cluster *suite.Plane
	manager      *suite.Program
	// program is the plugin, viewer the kubeconfig of a person on the hub, and looker on the cluster.
	program, viewer, looker string
}

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		world.hub = suite.Start(t, sandbox.Options{Name: "faults"}, manifests.Hub())
		world.manager = suite.StartHub(t, world.hub, func(c *hub.Config) {
			c.InstallCRDs = true
			suite.ServeWebhook(t, c)
		})
		world.hub.AwaitDefinitions(t)
		world.hub.AwaitPolicies(t)
		world.cluster = suite.Start(t, sandbox.Options{Name: near, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		suite.StartKubelet(t, near, world.cluster, func(pod *corev1.Pod) bool { return strings.Contains(pod.Name, played) })
		suite.RunAgent(t, suite.ConfigureAgent(t, world.hub, world.cluster, near, names.NamespaceAgent))
		suite.Admit(t, world.hub, near)
		world.viewer = person(t, world.hub, "spokelet-view")
		world.looker = person(t, world.cluster, "spokelet-view-cluster")
		world.program = filepath.Join(t.TempDir(), "kubectl-spokelet")
		require.NoError(t, suite.BuildPlugin(t.Context(), world.program))
		// The default set of clusters may be selected from in this namespace.
		require.NoError(t, world.hub.Apply(t.Context(), []byte(binding)))
	})
}

// binding lets the Placements of the faults select from all clusters.
const binding = `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
`

// person is the kubeconfig of a person who has a ClusterRole.
func person(t suite.T, p *suite.Plane, role string) string {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "on-call"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"}}
	suite.Eventually(t, func() error { return client.IgnoreAlreadyExists(p.Client.Create(t.Context(), binding)) })
	config, err := p.User("jane")
	require.NoError(t, err)
	return p.WriteKubeconfig(t, config, t.TempDir(), role)
}
