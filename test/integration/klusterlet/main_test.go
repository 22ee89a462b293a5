// Package klusterlet_test runs the agent as the Deployments of an OCM Klusterlet do: the program of the image with
// their arguments, their ServiceAccounts with the rights that OCM gives them and no others, their mounts, their HTTPS
// probes and their Leases. One control plane is the hub and the cluster that all agents run on; each test has a
// Klusterlet with a namespace of its own.
package klusterlet_test

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/sandbox/manager"
)

// patience is how long anything may take before a test fails, tick how often a test looks.
const patience, tick = 2 * time.Minute, 50 * time.Millisecond

//go:embed testdata/rbac.yaml
var rbac string

// shared is what all tests of the package use.
var shared struct {
	plane     *sandbox.ControlPlane
	admin     client.Client
	bootstrap *rest.Config
	// program is the agent as it is in its image.
	program string
}

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, start)) }

func start(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "klusterlet"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	shared.program = filepath.Join(plane.Dir, "spokelet")
	if err := fleet.Build(ctx, plane.Dir, map[string]string{"spokelet": "./cmd/spokelet"}); err != nil {
		return plane.Stop, err
	}
	for _, docs := range [][][]byte{manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs()} {
		if err := plane.Apply(ctx, docs...); err != nil {
			return plane.Stop, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1alpha1.Install, addonv1alpha1.Install, workv1.Install,
	} {
		if err := add(scheme); err != nil {
			return plane.Stop, err
		}
	}
	if shared.admin, err = client.New(plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return plane.Stop, err
	}
	shared.bootstrap, err = plane.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	if err != nil {
		return plane.Stop, err
	}
	config, err := manager.Configure(ctx, plane)
	if err != nil {
		return plane.Stop, err
	}
	stop := manager.Start(ctx, config)
	return func() { stop(); plane.Stop() }, nil
}
