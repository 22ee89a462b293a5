// Package works_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at which ManifestWorks may be written, and what becomes of those that have done what they were for.
package works_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
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
)

// shared is what all tests of the package use.
var shared struct {
	plane   *sandbox.ControlPlane
	scheme  *runtime.Scheme
	admin   client.WithWatch
	stopHub func()
}

func TestMain(m *testing.M) {
	os.Exit(sandbox.Main(m, start))
}

func start(ctx context.Context) (func(), error) {
	ctrl.SetLogger(logr.Discard())
	shared.scheme = runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(shared.scheme); err != nil {
		return nil, err
	}
	if err := workv1.Install(shared.scheme); err != nil {
		return nil, err
	}
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "works"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	docs := append(manifests.SpokeCRDs(), manifests.Klusterlet()...)
	docs = append(docs, manifests.CRDs()...)
	docs = append(docs, manifests.WorksWithoutExecutor()...)
	if err := plane.Apply(ctx, append(docs, manifests.Hub()...)...); err != nil {
		return plane.Stop, err
	}
	if shared.admin, err = client.NewWithWatch(plane.Admin(), client.Options{Scheme: shared.scheme}); err != nil {
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
	if err := manager.ServeWebhook(plane, &config); err != nil {
		return err
	}
	shared.stopHub = manager.Start(ctx, config)
	return nil
}
