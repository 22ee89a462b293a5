// Package page_test follows docs/operations/write-an-addon.md from an empty folder on: it writes the files of the
// page, runs its commands, and waits until the add-on is available on both clusters, whose agents are ours. The program
// is built as outsiders build it, in a module of its own, and runs with the rights that it prints. Pods are played.
package page_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the hub.
var plane *suite.Plane

// clusters are the managed clusters by name.
var clusters = map[string]*suite.Plane{}

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "page"}, manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs = true
			suite.ServeWebhook(t, c)
		})
		plane.AwaitDefinitions(t)
		plane.AwaitPolicies(t)
		for _, name := range []string{"cluster1", "cluster2"} {
			own := suite.Start(t, sandbox.Options{Name: name, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
			suite.StartKubelet(t, name, own, func(*corev1.Pod) bool { return false })
			suite.RunAgent(t, suite.ConfigureAgent(t, plane, own, name, names.NamespaceAgent))
			clusters[name] = own
		}
		for name := range clusters {
			suite.Admit(t, plane, name)
		}
	})
}
