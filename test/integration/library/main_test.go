// Package library_test runs add-ons that are made with the library for authors in a hub manager, with the rights that
// we ship and nothing more. Their functions do what must not happen: they panic, block, and return what no cluster can
// take. The tests play the clusters: they write what an agent would.
package library_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with a hub manager on it.
var plane *suite.Plane

// manager is the hub manager with the add-ons of authors in it.
var manager *suite.Program

// release is the version of the programs of the authors; a new one needs a new start of the hub manager.
var release atomic.Int32

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "library"}, manifests.CRDs(), manifests.Hub())
		config := suite.ConfigureHub(t, plane)
		config.InstallCRDs = true
		suite.ServeWebhook(t, &config)
		manager = suite.StartProgram(t, "the hub manager", func(ctx context.Context) error {
			agents, err := authors(int(release.Load()))
			if err != nil {
				return err
			}
			own := config
			own.Agents = addon.Registry{agents}
			return hub.Run(ctx, own)
		})
		plane.AwaitDefinitions(t)
		require.NoError(t, manager.Err())
	})
}
