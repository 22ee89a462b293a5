// Package join_test runs whole agents, as the service account that manifests/ ships, against hubs with the hub manager:
// they join, rotate, restart, lose their hub, move to another one, and choose among several. The first hub is the
// cluster that all agents run on, too. Certificates of the second one live for seconds.
package join_test

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// shortLife is the lifetime of the certificates of the second hub.
const shortLife = 20 * time.Second

// hubSide is one hub with its hub manager.
type hubSide struct {
	*suite.Plane
	// bootstrap is the identity with which clusters join.
	bootstrap *rest.Config
}

// What the tests share.
var (
	// first is the hub whose certificates live for a year, and the cluster that the agents run on.
	first *hubSide
	// brief is the other hub.
	brief *hubSide
	// own is the identity of agents on their own cluster.
	own *rest.Config
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		first = startHub(t, sandbox.Options{Name: "first"}, manifests.SpokeCRDs(), manifests.Klusterlet())
		brief = startHub(t, sandbox.Options{Name: "brief", SigningDuration: shortLife})
		own = first.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	})
}

// startHub starts a control plane with a hub manager, as it is shipped.
func startHub(t suite.T, options sandbox.Options, further ...[][]byte) *hubSide {
	h := &hubSide{Plane: suite.Start(t, options, append([][][]byte{manifests.CRDs(), manifests.Hub()}, further...)...)}
	h.bootstrap = h.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	suite.StartHub(t, h.Plane)
	return h
}
