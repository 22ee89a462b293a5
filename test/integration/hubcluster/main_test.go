// Package hubcluster_test runs the hub manager, as the service account that manifests/ ships, on a real control plane,
// and looks at what becomes of clusters, placements and installed add-ons.
package hubcluster_test

import (
	"testing"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// trustedUser is the one user whose certificate requests need no person.
const trustedUser = "trusted-bootstrap@example.com"

// What the tests share: a control plane and the hub manager on it.
var (
	plane   *suite.Plane
	manager *suite.Program
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "hubcluster"}, manifests.Hub())
		manager = suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs, c.LeaderElect = true, true
			c.AutoApprovedCSRUsers, c.AutoApproveBoundBootstrap = []string{trustedUser}, true
		})
		plane.AwaitDefinitions(t)
		plane.AwaitPolicies(t)
	})
}
