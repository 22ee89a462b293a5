// Package rollout_test runs the rollout of the hub against a real API server with just the rights that it needs. The
// tests play everybody else: the installer, who creates add-ons, the placement controller, who writes decisions, the
// deployer, who writes works, and the spokes, who report on them.
package rollout_test

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/window"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// What the tests share: one control plane with the rollout of the hub on it, and what that sends.
var (
	plane *suite.Plane
	sent  = &requests{byVerb: map[string]int{}}
)

//go:embed testdata/rbac.yaml
var rbac []byte

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "rollout"}, manifests.CRDs(), [][]byte{rbac})
		startRollout(t)
	})
}

// program runs the rollout. A test that runs alone may stop and start it.
var program *suite.Program

// startRollout runs the rollout as a user who has the rights that it needs.
func startRollout(t suite.T) {
	config, err := plane.User("rollout")
	require.NoError(t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{sent, next} })
	program = suite.StartProgram(t, "the rollout", func(ctx context.Context) error {
		mgr := newManager(t, config)
		cached.Store(&addonapi.Client{Client: mgr.GetClient()})
		return mgr.Start(ctx)
	})
}

// cached reads what the rollout knows.
var cached atomic.Pointer[addonapi.Client]

// newManager returns a manager that configures add-ons and rolls them out, and finds no agent to deploy.
func newManager(t suite.T, config *rest.Config) ctrl.Manager {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Cache:  suite.CachedConfigurations(names.NamespaceHub),
	})
	require.NoError(t, err)
	addOns := addonapi.Client{Client: mgr.GetClient()}
	configurations := suite.NewConfigurations(mgr, addOns, names.NamespaceHub)
	gates := &gate.Reader{Client: mgr.GetClient(), AddOns: addOns, Has: configurations.Configurer.Has}
	configurations.Rollout.Gates, configurations.Configurer.Gates = gates, gates
	windows := &window.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Workers: 1}
	require.NoError(t, windows.SetupWithManager(mgr))
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), AddOns: addOns, Agents: addon.Registry{},
		Configurer: configurations.Configurer, Watch: configurations.Watch, Clock: clock.RealClock{}, Workers: 4,
	}
	indexer := mgr.GetFieldIndexer()
	require.NoError(t, errors.Join(
		addOns.Index(t.Context(), indexer), deployer.Index(t.Context(), indexer),
		addonconfig.Index(t.Context(), addOns, indexer),
	))
	require.NoError(t, deployer.SetupWithManager(mgr))
	require.NoError(t, configurations.Rollout.SetupWithManager(mgr))
	return mgr
}

// requests counts what the hub sends.
type requests struct {
	mu     sync.Mutex
	byVerb map[string]int
}

// lostRaces counts patches that wrote nothing, because another writer was faster.
const lostRaces = "409"

func (r *requests) add(verb string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byVerb[verb]++
}

// patches returns how many patches were not lost races.
func (r *requests) patches() int { return r.of(http.MethodPatch) - r.of(lostRaces) }

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
	c.requests.add(request.Method)
	response, err := c.next.RoundTrip(request)
	if request.Method == http.MethodPatch && err == nil && response.StatusCode == http.StatusConflict {
		c.requests.add(lostRaces)
	}
	return response, err
}
