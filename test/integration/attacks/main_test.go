// Package attacks_test attacks a hub: the hub manager runs in this process with the rights that we ship, on a real API
// server, and those who attack hold real identities, most of all the agent of another cluster that the hub accepted,
// with a certificate that the hub approved and Kubernetes signed.
//
// The tables of requests are in the files cases_*_test.go: each case is one request that must not pass, keyed by a
// sentence, with the rule that the hub must name or the words with which the API server already refuses it. What can be
// tried without a certificate request is in rights_test.go.
package attacks_test

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/persona"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/addons.yaml
var addons []byte

//go:embed testdata/rights.yaml
var rights []byte

//go:embed testdata/roles.yaml
var roles []byte

// shared holds what all tests of the package use.
var shared struct {
	*world
	// metrics is the address of the metrics of the hub manager.
	metrics string
	// manager is the hub manager.
	manager *suite.Program
}

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane := suite.Start(t, sandbox.Options{Name: "attacks"}, manifests.CRDs(), manifests.Hub(),
			[][]byte{addons, rights, persona.Documents()})
		shared.metrics = fmt.Sprintf("127.0.0.1:%d", suite.FreePort(t))
		shared.manager = suite.StartHub(t, plane, func(c *hub.Config) {
			c.LeaderElect, c.MetricsAddress, c.AutoApprovedCSRUsers = true, shared.metrics, []string{trustedUser}
		})
		var err error
		shared.world, err = newWorld(t.Context(), plane)
		require.NoError(t, err)
	})
}
