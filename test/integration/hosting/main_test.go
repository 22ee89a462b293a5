// Package hosting_test runs a hub manager and the agents of two clusters: the agent of cluster guest runs on cluster
// host, as a hosted klusterlet does, and so do the agents of its add-ons. Certificates live for seconds.
package hosting_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// shortLife is the lifetime of all certificates that the hub signs.
	shortLife = 20 * time.Second
	// host and guest are the names of the clusters.
	host, guest = "host", "guest"
)

// The control planes: the hub, and one for each cluster.
var plane, hostPlane, guestPlane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "hub", SigningDuration: shortLife}, manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs = true
			suite.ServeWebhook(t, c)
		})
		plane.AwaitDefinitions(t)
		plane.AwaitPolicies(t)
		hostPlane = suite.Start(t, sandbox.Options{Name: host, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		guestPlane = suite.Start(t, sandbox.Options{Name: guest, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())

		suite.RunAgent(t, suite.ConfigureAgent(t, plane, hostPlane, host, names.NamespaceAgent))
		// The agent of the guest has a namespace of its own on the host.
		const namespace = guest + "-agent"
		require.NoError(t, hostPlane.Client.Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		hosted := suite.ConfigureAgent(t, plane, hostPlane, guest, namespace)
		hosted.SpokeKubeconfig = guestPlane.WriteKubeconfig(t,
			guestPlane.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent), t.TempDir(), "spoke")
		suite.RunAgent(t, hosted)
		suite.Admit(t, plane, host)
		suite.Admit(t, plane, guest)
	})
}
