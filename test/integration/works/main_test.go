// Package works_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at which ManifestWorks may be written, and what becomes of those that have done what they were for.
package works_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
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
	identity, err := plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountHub)
	if err != nil {
		return err
	}
	kubeconfig, err := plane.Kubeconfig(identity)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "works-")
	if err != nil {
		return err
	}
	config := hub.DefaultConfig()
	config.Kubeconfig = filepath.Join(dir, "kubeconfig")
	config.Namespace, config.HealthAddress, config.InstallCRDs = names.NamespaceHub, "0", true
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	config.NilExecutorValidating = true
	config.WebhookBindAddress, config.WebhookPort, config.WebhookCertDir = "127.0.0.1", ports[0], dir
	config.WebhookURL = "https://127.0.0.1:" + strconv.Itoa(ports[0]) + "/convert"
	config.WebhookCAFile = filepath.Join(dir, "tls.crt")
	for name, content := range map[string][]byte{"kubeconfig": kubeconfig, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := hub.Run(ctx, config); err != nil {
			fmt.Fprintln(os.Stderr, "the hub manager ended:", err)
		}
	}()
	shared.stopHub = func() { cancel(); <-ended; _ = os.RemoveAll(dir) }
	return nil
}
