// Package token_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at what add-ons with the driver token get. The tests play the agents of the clusters, with their groups.
package token_test

import (
	"testing"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// What the tests share: a control plane and the hub manager on it.
var (
	plane   *suite.Plane
	manager *suite.Program
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "token"}, manifests.CRDs(), manifests.Hub())
		manager = suite.StartHub(t, plane)
	})
}
