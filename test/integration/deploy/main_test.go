// Package deploy_test runs the rollout and the deployment of template add-ons against a real control plane, with the
// rights that we ship and nothing more. The tests play the clusters: they write what an agent would.
package deploy_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with rollout and deployment on it.
var plane *suite.Plane

// program runs the reconcilers. Tests may stop and start it: nothing may be lost by that.
var program *suite.Program

// rendererVersion is the version of the code that renders; empty for that of the build.
var rendererVersion atomic.Value

// deployClock is the clock of the deployment, which only moves when a test moves it. It is ahead of that of the API
// server, which says when an add-on was deleted: a deadline of zero has passed then, however slow the tests are.
var deployClock = clocktesting.NewFakePassiveClock(time.Now().Add(20 * time.Minute))

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "deploy", Audit: true}, manifests.CRDs(), manifests.Hub())
		config := plane.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager)
		bindings := suite.NewClient(t, suite.AsAddOns(config))
		program = suite.StartProgram(t, "the hub manager", func(ctx context.Context) error {
			return runReconcilers(ctx, config, bindings)
		})
	})
}

// runReconcilers runs the rollout and the deployment as the hub manager does.
func runReconcilers(ctx context.Context, config *rest.Config, bindings client.Client) error {
	options := suite.CachedConfigurations(names.NamespaceHub)
	options.ByObject[&workv1.ManifestWork{}] = cache.ByObject{Transform: works.Trim(&intern.Table{})}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Cache:  options,
	})
	if err != nil {
		return err
	}
	cached := addonapi.Client{Client: mgr.GetClient()}
	version, _ := rendererVersion.Load().(string)
	configurations := suite.NewConfigurations(mgr, cached, names.NamespaceHub)
	gates := &gate.Reader{Client: mgr.GetClient()}
	configurations.Rollout.Gates, configurations.Configurer.Gates = gates, gates
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Bindings: bindings, Live: mgr.GetAPIReader(),
		AddOns: cached, Clock: deployClock, Workers: 2,
		Configurer: configurations.Configurer, Watch: configurations.Watch,
		Version: version, AllNamespaces: true,
		Agents: &template.Registry{
			Configs: mgr.GetClient(), AddOns: cached, Configurer: configurations.Configurer, Home: names.NamespaceHub,
		},
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(
		cached.Index(ctx, indexer), deployer.Index(ctx, indexer), addonconfig.Index(ctx, cached, indexer),
		configurations.Rollout.SetupWithManager(mgr), deployer.SetupWithManager(mgr),
	); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
