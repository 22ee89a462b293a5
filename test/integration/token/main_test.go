// Package token_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at what add-ons with the driver token get. The tests play the agents of the clusters, with their groups.
package token_test

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
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/manager"
)

const (
	// patience is how long anything may take before a test fails.
	patience = 30 * time.Second
	// tick is how often a test looks.
	tick = 50 * time.Millisecond
)

// shared is what all tests of the package use.
var shared struct {
	plane *sandbox.ControlPlane
	admin client.Client
	// addOns are add-ons as the administrator sees them.
	addOns addonapi.Client
	// stopHub ends the hub manager; startHub starts it again.
	stopHub func()
}

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, setUp)) }

func setUp(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "token"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	if err := plane.Apply(ctx, append(manifests.CRDs(), manifests.Hub()...)...); err != nil {
		return plane.Stop, err
	}
	if shared.admin, err = newClient(plane.Admin()); err != nil {
		return plane.Stop, err
	}
	shared.addOns = addonapi.Client{Client: shared.admin}
	if err := startHub(ctx); err != nil {
		return plane.Stop, err
	}
	return func() { shared.stopHub(); plane.Stop() }, nil
}

// startHub runs the hub manager in this process until shared.stopHub is called.
func startHub(ctx context.Context) error {
	config, err := manager.Configure(ctx, shared.plane)
	if err != nil {
		return err
	}
	shared.stopHub = manager.Start(ctx, config)
	return nil
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, clusterv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// eventually waits until holds returns nil. Conditions run in the goroutine of the test, so they may use require.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	within(t, patience, holds)
}

// within is eventually with a limit of its own.
func within(t *testing.T, limit time.Duration, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "still not so after %s: %v", limit, err)
		<-ticker.C
	}
}
