// Package admission_test runs the hub manager with its webhook on a real control plane, as the service account that
// manifests/ ships, and writes ManagedClusters as users of different rights.
package admission_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
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
	plane  *sandbox.ControlPlane
	admin  client.Client
	config hub.Config
	// stopHub ends the hub manager; startHub starts it again.
	stopHub func()
}

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, setUp)) }

func setUp(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "admission"})
	if err != nil {
		return nil, err
	}
	stop := func() {
		if shared.stopHub != nil {
			shared.stopHub()
		}
		plane.Stop()
	}
	shared.plane = plane
	if err := plane.Apply(ctx, manifests.Hub()...); err != nil {
		return stop, err
	}
	if shared.admin, err = newClient(plane.Admin()); err != nil {
		return stop, err
	}
	if shared.config, err = configure(ctx, plane); err != nil {
		return stop, err
	}
	startHub(ctx)
	return stop, untilServed(ctx)
}

// configure prepares a hub manager that serves its webhook.
func configure(ctx context.Context, plane *sandbox.ControlPlane) (hub.Config, error) {
	config, err := manager.Configure(ctx, plane)
	if err != nil {
		return hub.Config{}, err
	}
	config.InstallCRDs = true
	return config, manager.ServeWebhook(plane, &config)
}

// startHub runs the hub manager in this process until shared.stopHub is called.
func startHub(ctx context.Context) {
	stop := manager.Start(ctx, shared.config)
	shared.stopHub = func() { stop(); shared.stopHub = nil }
}

// untilServed waits until a cluster that would be created is completed and checked.
func untilServed(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		cluster, bad := named("probe"), named("managed-clusters")
		err := shared.admin.Create(ctx, cluster, client.DryRunAll)
		if err == nil && cluster.Labels[setLabel] == "default" && shared.admin.Create(ctx, bad, client.DryRunAll) != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the admission is not served: %w", err)
		}
		<-ticker.C
	}
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.Install} {
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
