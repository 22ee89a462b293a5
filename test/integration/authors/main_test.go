// Package authors_test runs the sample add-ons of test/samples as their authors would. Each is a module of its own that
// imports the library; it is copied out of the repository and built there. Its program runs beside the hub manager,
// with the rights that it prints and no others, for clusters east and west. The programs of the agents run, too: with
// the arguments, the Secrets and the ServiceAccount that their pods would have.
package authors_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// The managed clusters.
const east, west, guest = "east", "west", "guest"

// What the tests share.
var (
	// plane is the hub.
	plane *suite.Plane
	// clusters are the managed clusters by name.
	clusters = map[string]*suite.Plane{}
	// weather and uptime are the samples.
	weather, uptime sample
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		weather, uptime = build(t, "weather"), build(t, "uptime")
		plane = suite.Start(t, sandbox.Options{Name: "hub"}, manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs = true
			suite.ServeWebhook(t, c)
		})
		plane.AwaitDefinitions(t)
		plane.AwaitPolicies(t)
		for _, name := range []string{east, west, guest} {
			clusters[name] = suite.Start(t, sandbox.Options{Name: name, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		}
		for _, name := range []string{east, west} {
			suite.StartKubelet(t, name, clusters[name], ofJob)
			suite.RunAgent(t, suite.ConfigureAgent(t, plane, clusters[name], name, names.NamespaceAgent))
		}
		startHostedAgent(t)
		for name := range clusters {
			suite.Admit(t, plane, name)
		}
	})
}

// startHostedAgent runs the agent of guest on east.
func startHostedAgent(t suite.T) {
	t.Helper()
	const namespace = guest + "-agent"
	require.NoError(t, clusters[east].Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: at("", namespace)}))
	config := suite.ConfigureAgent(t, plane, clusters[east], guest, namespace)
	config.SpokeKubeconfig = clusters[guest].WriteKubeconfig(t,
		clusters[guest].AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent), t.TempDir(), "spoke")
	suite.RunAgent(t, config)
}
