// Package rollout_test runs the rollout of the hub against a real API server with just the rights that it needs. The
// tests play everybody else: the installer, who creates add-ons, the placement controller, who writes decisions, the
// deployer, who writes works, and the spokes, who report on them.
package rollout_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

// What the tests share: one control plane with the rollout of the hub on it.
var (
	admin client.Client
	hub   addonapi.Client
	sent  = &requests{byVerb: map[string]int{}}
)

//go:embed testdata/rbac.yaml
var rbac []byte

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, setUp)) }

func setUp(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "rollout"})
	if err != nil {
		return nil, err
	}
	if err := plane.Apply(ctx, append(manifests.CRDs(), rbac)...); err != nil {
		return plane.Stop, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, addonv1beta1.Install, clusterv1beta1.Install, workv1.Install, corev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return plane.Stop, fmt.Errorf("building a scheme: %w", err)
		}
	}
	if admin, err = client.New(plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return plane.Stop, err
	}
	hub = addonapi.Client{Client: admin}
	user, err := plane.User("rollout")
	if err != nil {
		return plane.Stop, err
	}
	stop, err := startHub(ctx, user, scheme)
	if err != nil {
		return plane.Stop, err
	}
	return func() { stop(); plane.Stop() }, nil
}

func startHub(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (func(), error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{sent, next} })
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("building a manager: %w", err)
	}
	r := &rollout.Reconciler{
		AddOns: addonapi.Client{Client: mgr.GetClient()}, Client: mgr.GetClient(), Clock: clock.RealClock{}, Workers: 4,
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(r.AddOns.Index(ctx, indexer), r.Index(ctx, indexer)); err != nil {
		return nil, err
	}
	if err := r.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, "the hub ended with", err)
		}
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		stop()
		return nil, fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	return stop, nil
}

// requests counts what the hub sends.
type requests struct {
	mu     sync.Mutex
	byVerb map[string]int
}

// of returns how many requests had one of the methods.
func (r *requests) of(methods ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for _, method := range methods {
		total += r.byVerb[method]
	}
	return total
}

type counted struct {
	requests *requests
	next     http.RoundTripper
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	c.requests.mu.Lock()
	c.requests.byVerb[request.Method]++
	c.requests.mu.Unlock()
	return c.next.RoundTrip(request)
}
