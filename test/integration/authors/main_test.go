// Package authors_test runs the sample add-ons of test/samples as their authors would. Each is a module of its own that
// imports the library; it is copied out of the repository and built there. Its program runs beside the hub manager, with
// the rights that it prints and no others, for clusters east and west. The programs of the agents run, too: with the
// arguments, the Secrets and the ServiceAccount that their pods would have.
package authors_test

import (
	"testing"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// The managed clusters. East hosts the agent of west where a test asks for it.
const east, west = "east", "west"

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
		for _, name := range []string{east, west} {
			clusters[name] = suite.Start(t, sandbox.Options{Name: name}, manifests.SpokeCRDs(), manifests.Klusterlet())
			startKubelet(t, name, clusters[name])
			suite.RunAgent(t, suite.ConfigureAgent(t, plane, clusters[name], name, names.NamespaceAgent))
		}
		for _, name := range []string{east, west} {
			suite.Admit(t, plane, name)
		}
	})
}
