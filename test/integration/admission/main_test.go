// Package admission_test runs the hub manager with its webhook on a real control plane, as the service account that
// manifests/ ships, and writes ManagedClusters as users of different rights.
package admission_test

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
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
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
	dir, err := os.MkdirTemp("", "admission-")
	if err != nil {
		return plane.Stop, err
	}
	stop := func() {
		if shared.stopHub != nil {
			shared.stopHub()
		}
		plane.Stop()
		_ = os.RemoveAll(dir)
	}
	shared.plane = plane
	if err := plane.Apply(ctx, manifests.Hub()...); err != nil {
		return stop, err
	}
	if shared.admin, err = newClient(plane.Admin()); err != nil {
		return stop, err
	}
	if shared.config, err = configure(ctx, plane, dir); err != nil {
		return stop, err
	}
	startHub(ctx)
	return stop, untilServed(ctx)
}

// configure writes what the hub manager reads: its kubeconfig and the certificate of its webhook.
func configure(ctx context.Context, plane *sandbox.ControlPlane, dir string) (hub.Config, error) {
	identity, err := plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountHub)
	if err != nil {
		return hub.Config{}, err
	}
	kubeconfig, err := plane.Kubeconfig(identity)
	if err != nil {
		return hub.Config{}, err
	}
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return hub.Config{}, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return hub.Config{}, err
	}
	for name, content := range map[string][]byte{"kubeconfig": kubeconfig, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return hub.Config{}, err
		}
	}
	config := hub.DefaultConfig()
	config.Kubeconfig, config.Namespace = filepath.Join(dir, "kubeconfig"), names.NamespaceHub
	config.InstallCRDs, config.HealthAddress, config.LeaderElect = true, "0", false
	config.WebhookBindAddress, config.WebhookPort, config.WebhookCertDir = "127.0.0.1", ports[0], dir
	config.WebhookURL = "https://127.0.0.1:" + strconv.Itoa(ports[0]) + "/convert"
	config.WebhookCAFile = filepath.Join(dir, "tls.crt")
	return config, nil
}

// startHub runs the hub manager in this process until shared.stopHub is called.
func startHub(ctx context.Context) {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.WithoutCancel(ctx), logr.Discard()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := hub.Run(ctx, shared.config); err != nil {
			fmt.Fprintln(os.Stderr, "the hub manager ended:", err)
		}
	}()
	shared.stopHub = func() { cancel(); <-done; shared.stopHub = nil }
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
