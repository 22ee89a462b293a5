// Package join_test runs whole agents, as the service account that manifests/ ships, against hubs with the hub manager:
// they join, rotate, restart, lose their hub, move to another one, and choose among several. The first hub is the
// cluster that all agents run on, too. Certificates of the second one live for seconds.
package join_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// patience is how long anything may take before a test fails, tick how often a test looks.
	patience, tick = time.Minute, 50 * time.Millisecond
	// shortLife is the lifetime of the certificates of the second hub.
	shortLife = 20 * time.Second
)

// hubSide is one hub with its hub manager.
type hubSide struct {
	plane *sandbox.ControlPlane
	admin client.Client
	// bootstrap is the identity with which clusters join.
	bootstrap *rest.Config
	stop      func()
}

// shared is what all tests of the package use.
var shared struct {
	// hub is the hub whose certificates live for a year, and the cluster that the agents run on.
	hub *hubSide
	// brief is the other hub.
	brief *hubSide
	// own is the identity of agents on their own cluster.
	own *rest.Config
	// manager is the log of both hub managers.
	manager logr.Logger
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	shared.manager = logr.Discard()
	if os.Getenv("JOIN_TEST_LOG") != "" {
		shared.manager = logTo(os.Stderr, "hub ")
	}
	os.Exit(sandbox.Main(m, start))
}

// logTo returns a logger that writes a line per entry.
func logTo(out io.Writer, prefix string) logr.Logger {
	var mu sync.Mutex
	return funcr.New(func(name, line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, prefix+name, line)
	}, funcr.Options{LogTimestamp: true})
}

func start(ctx context.Context) (func(), error) {
	var group sync.WaitGroup
	var failed [2]error
	group.Go(func() { shared.hub, failed[0] = startHub(ctx, "first", 0) })
	group.Go(func() { shared.brief, failed[1] = startHub(ctx, "brief", shortLife) })
	group.Wait()
	stop := func() {
		for _, side := range []*hubSide{shared.hub, shared.brief} {
			if side != nil {
				side.stop()
			}
		}
	}
	for _, err := range failed {
		if err != nil {
			return stop, err
		}
	}
	for _, docs := range [][][]byte{manifests.SpokeCRDs(), manifests.Klusterlet()} {
		if err := shared.hub.plane.Apply(ctx, docs...); err != nil {
			return stop, err
		}
	}
	var err error
	shared.own, err = shared.hub.plane.ServiceAccount(ctx, names.NamespaceAgent, names.ServiceAccountAgent)
	return stop, err
}

// startHub starts a control plane with a hub manager, as it is shipped.
func startHub(ctx context.Context, name string, life time.Duration) (*hubSide, error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: name, SigningDuration: life})
	if err != nil {
		return nil, err
	}
	side := &hubSide{plane: plane, stop: plane.Stop}
	for _, docs := range [][][]byte{manifests.CRDs(), manifests.Hub()} {
		if err := plane.Apply(ctx, docs...); err != nil {
			return side, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, addonv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			return side, err
		}
	}
	if side.admin, err = client.New(plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return side, err
	}
	side.bootstrap, err = plane.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	if err != nil {
		return side, err
	}
	return side, side.runManager(ctx)
}

// runManager runs the hub manager in this process until the hub is stopped.
func (h *hubSide) runManager(ctx context.Context) error {
	identity, err := h.plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
	if err != nil {
		return err
	}
	kubeconfig, err := h.plane.Kubeconfig(identity)
	if err != nil {
		return err
	}
	path := filepath.Join(h.plane.Dir, "hub-manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	config := hub.DefaultConfig()
	config.Kubeconfig, config.Namespace = path, names.NamespaceHub
	config.HealthAddress, config.LeaderElect = "0", false
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(ctx, shared.manager))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := hub.Run(ctx, config); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "the hub manager ended:", err)
		}
	}()
	h.stop = func() { cancel(); <-done; h.plane.Stop() }
	return nil
}
