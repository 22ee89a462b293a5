// Package hubcrash_test kills the hub manager at its writes while it installs, upgrades, takes back and removes an
// add-on with pre-delete hooks on three clusters, of which one hosts the agent of another, and lets a new hub manager
// go on.
//
// The hub manager runs inside the test, as its ServiceAccount, with a transport that counts writes. At the write in
// question the request takes effect and its answer is lost, or it does not arrive; from that instant nothing leaves the
// hub manager, and what it knew is lost, as after kill -9. The clusters are played by package spokes. Each life of the
// add-on goes through all phases, with one death in each. After each phase everything must be as without deaths; what
// happened in between is judged from the history of the API server (history_test.go).
//
// The flag -all dies at every write in both ways, which takes long; otherwise -seed draws some.
package hubcrash_test

import (
	"context"
	_ "embed"
	"flag"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/bench/spokes"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var (
	all   = flag.Bool("all", false, "die at every write, in both ways")
	first = flag.Int("first", 1, "with -all: the first write to die at")
	seed  = flag.Uint64("seed", 1, "draws the deaths; 0 is a new one")
)

// What the tests share: a control plane, the configuration of the hub manager, and the three clusters.
var (
	plane    *suite.Plane
	config   hub.Config
	clusters = []string{"mortal-1", "mortal-2", "mortal-3"}
)

//go:embed testdata/hub.yaml
var groundwork []byte

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "hubcrash"}, manifests.CRDs(), manifests.Hub())
		plane.AwaitPolicies(t)
		config = suite.ConfigureHub(t, plane)
		// The hosting cluster is named on the cluster, and the add-on is to have it from its installation on.
		config.TrustAsOCM = true
		require.NoError(t, plane.Apply(t.Context(), groundwork))
		played, err := spokes.Start(context.WithoutCancel(t.Context()), spokes.Options{Config: plane.Admin()})
		require.NoError(t, err)
		t.Cleanup(played.Stop)
		manager := suite.RunHub(t, config)
		require.NoError(t, played.Join(t.Context(), clusters, map[string]string{labelMortal: "true"}))
		manager.Stop()
		hosted := &clusterv1.ManagedCluster{}
		hosted.Name = clusters[2]
		require.NoError(t, plane.Client.Patch(t.Context(), hosted, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+names.AnnotationHostingCluster+`":"`+clusters[0]+`"}}}`))))
	})
}

// manager is the hub manager, which dies and is started again.
type manager struct {
	*axe
	program *suite.Program
}

// startManager starts a hub manager under a new axe.
func startManager(t suite.T) *manager {
	t.Helper()
	m := &manager{axe: newAxe()}
	m.program = suite.StartProgram(t, "the hub manager", func(ctx context.Context) error {
		c, a := config, m.axe
		c.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return haft{a, next} }
		err := hub.Run(ctx, c)
		if a.isDead() {
			return nil // How it ends after its death does not matter: it may still try to write its last Events.
		}
		return err
	})
	return m
}

// revive stops what is left of the hub manager, and starts a new one.
func (m *manager) revive() {
	m.program.Stop()
	m.axe = newAxe()
	m.program.Start()
}
