// Package klusterlet_test runs the agent as the Deployments of an OCM Klusterlet do: the program of the image with
// their arguments, their ServiceAccounts with the rights that OCM gives them and no others, their mounts, their HTTPS
// probes and their Leases. One control plane is the hub and the cluster that all agents run on, another one the managed
// cluster in hosted mode; each test has a Klusterlet with a namespace of its own.
package klusterlet_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/suite"
)

// What the tests share.
var (
	// plane is the hub and the cluster that all agents run on, managed the managed cluster in hosted mode.
	plane, managed *suite.Plane
	// bootstrap is the identity with which clusters join.
	bootstrap *rest.Config
	// program is the agent as it is in its image.
	program string
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		dir := t.TempDir()
		program = filepath.Join(dir, "spokelet")
		require.NoError(t, fleet.Build(t.Context(), dir, map[string]string{"spokelet": "./cmd/spokelet"}))
		plane = suite.Start(t, sandbox.Options{Name: "klusterlet"},
			manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs())
		bootstrap = plane.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
		suite.StartHub(t, plane)
		managed = suite.Start(t, sandbox.Options{Name: "managed", Managed: true}, manifests.SpokeCRDs())
	})
}
