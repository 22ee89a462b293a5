// Package works_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at which ManifestWorks may be written, and what becomes of those that have done what they were for.
package works_test

import (
	"testing"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with a hub manager on it.
var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "works"}, manifests.SpokeCRDs(), manifests.Klusterlet(),
			manifests.CRDs(), manifests.WorksWithoutExecutor(), manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs, c.LeaderElect = true, true
			suite.ServeWebhook(t, c)
		})
	})
}
