// Package hubcluster_test runs the hub manager, as the service account that manifests/ ships, on a real control plane,
// and looks at what becomes of clusters, placements and installed add-ons.
package hubcluster_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/manager"
)

const (
	// patience is how long anything may take before a test fails.
	patience = 30 * time.Second
	// tick is how often a test looks.
	tick = 50 * time.Millisecond
	// trustedUser is the one user whose certificate requests need no person.
	trustedUser = "trusted-bootstrap@example.com"
)

// shared is what all tests of the package use.
var shared struct {
	plane *sandbox.ControlPlane
	admin client.Client
	// stopHub ends the hub manager.
	stopHub func()
}

func TestMain(m *testing.M) {
	os.Exit(sandbox.Main(m, start))
}

func start(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "hubcluster"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	if err := plane.Apply(ctx, manifests.Hub()...); err != nil {
		return plane.Stop, err
	}
	if shared.admin, err = newClient(plane.Admin()); err != nil {
		return plane.Stop, err
	}
	if err := startHub(ctx, plane); err != nil {
		return plane.Stop, err
	}
	return func() { shared.stopHub(); plane.Stop() }, nil
}

// startHub runs the hub manager in this process until shared.stopHub is called.
func startHub(ctx context.Context, plane *sandbox.ControlPlane) error {
	config, err := manager.Configure(ctx, plane)
	if err != nil {
		return err
	}
	config.InstallCRDs, config.LeaderElect = true, true
	config.AutoApprovedCSRUsers, config.AutoApproveBoundBootstrap = []string{trustedUser}, true
	shared.stopHub = manager.Start(ctx, config)
	return nil
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install,
		workv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// eventually waits until holds returns nil. Conditions run in the goroutine of the test, so they may use require.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "still not so after %s: %v", patience, err)
		<-ticker.C
	}
}

// steadily checks that holds keeps returning nil for a while.
func steadily(t *testing.T, period time.Duration, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(period)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for time.Now().Before(deadline) {
		require.NoError(t, holds())
		<-ticker.C
	}
}

// stays checks that holds keeps returning nil for a moment.
func stays(t *testing.T, holds func() error) {
	t.Helper()
	steadily(t, time.Second, holds)
}
