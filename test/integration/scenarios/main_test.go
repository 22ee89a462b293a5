// Package scenarios_test runs the stories of users from their YAML files on: a user applies all documents of a story to
// a hub as a GitOps tool does, and the hub manager and real agents make of it what the story promises. The hub is a
// managed cluster, too, and there are two more; cluster east hosts agents of others. Deployments and Jobs are run by
// the controllers of Kubernetes. There is no kubelet: the pods are played, see suite.StartKubelet.
package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// The clusters: the hub manages itself under the name local. East is the canary.
const (
	east, local, west = "east", "local", "west"
)

// What the stories share.
var (
	// plane is the hub.
	plane *suite.Plane
	// clusters are the managed clusters by name.
	clusters = map[string]*suite.Plane{}
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: local}, manifests.Hub(), manifests.SpokeCRDs(), manifests.Klusterlet())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs, c.Agents = true, addon.Registry{goAgents(t)}
			suite.ServeWebhook(t, c)
		})
		plane.AwaitDefinitions(t)
		plane.AwaitPolicies(t)
		clusters[local] = plane
		for _, name := range []string{east, west} {
			clusters[name] = suite.Start(t, sandbox.Options{Name: name, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		}
		for name, own := range clusters {
			suite.StartKubelet(t, name, own, playedByHand)
			suite.RunAgent(t, suite.ConfigureAgent(t, plane, own, name, names.NamespaceAgent))
		}
		for name := range clusters {
			suite.Admit(t, plane, name)
			label(t, name)
		}
	})
}

// label labels a cluster with its name and its ring, by which Placements select.
func label(t suite.T, cluster string) {
	t.Helper()
	ring := "rest"
	if cluster == east {
		ring = "canary"
	}
	found := &clusterv1.ManagedCluster{}
	found.Name = cluster
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"site":"`+cluster+`","ring":"`+ring+`"}}}`))
	require.NoError(t, plane.Client.Patch(t.Context(), found, patch))
}
