// Package abuse_test attacks a hub: the hub manager runs in this process with the rights that we ship, on a real API
// server, and those who attack hold real identities, most of all the agent of another cluster that the hub accepted,
// with a certificate that the hub approved and Kubernetes signed.
//
// The tables of requests are in the files cases_*_test.go: each case is one request that must not pass, keyed by a
// sentence, with the rule that the hub must name or the words with which the API server already refuses it. What can be
// tried without a certificate request is in rights_test.go.
package abuse_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/manager"
	"github.com/spokelet/spokelet/test/sandbox/persona"
)

//go:embed testdata/addons.yaml
var addons []byte

//go:embed testdata/rights.yaml
var rights []byte

//go:embed testdata/roles.yaml
var roles []byte

// shared is what all tests of the package use.
var shared struct {
	*world
	// metrics is the address of the metrics of the hub manager.
	metrics string
	// log is what the hub manager wrote.
	log *logFile
}

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, start)) }

func start(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "abuse"})
	if err != nil {
		return nil, err
	}
	ours, theirs := slices.Concat(manifests.CRDs(), manifests.Hub()), [][]byte{addons, rights, persona.Documents()}
	if err := plane.Apply(ctx, append(ours, theirs...)...); err != nil {
		return plane.Stop, err
	}
	stopHub, err := startHub(ctx, plane)
	if err != nil {
		return plane.Stop, err
	}
	stop := func() { stopHub(); plane.Stop() }
	shared.world, err = newWorld(ctx, plane)
	return stop, err
}

// startHub runs the hub manager in this process.
func startHub(ctx context.Context, plane *sandbox.ControlPlane) (stop func(), err error) {
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return nil, err
	}
	config, err := manager.Configure(ctx, plane)
	if err != nil {
		return nil, err
	}
	shared.metrics = fmt.Sprintf("127.0.0.1:%d", ports[0])
	config.LeaderElect = true
	config.MetricsAddress, config.AutoApprovedCSRUsers = shared.metrics, []string{trustedUser}
	shared.log = &logFile{}
	return manager.Start(ctx, config, shared.log), nil
}
