// Package deploy_test runs the rollout and the deployment of template add-ons against a real control plane, with the
// rights that we ship and nothing more. The tests play the clusters: they write what an agent would.
package deploy_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with rollout and deployment on it.
var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "deploy", Audit: true}, manifests.CRDs(), manifests.Hub())
		startReconcilers(t)
	})
}

// startReconcilers runs the rollout and the deployment as the hub manager does.
func startReconcilers(t suite.T) {
	config := plane.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Cache:  suite.CachedConfigurations(names.NamespaceHub),
	})
	require.NoError(t, err)
	cached := addonapi.Client{Client: mgr.GetClient()}
	configurations := suite.NewConfigurations(mgr, cached, names.NamespaceHub)
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Bindings: suite.NewClient(t, suite.AsAddOns(config)), Live: mgr.GetAPIReader(),
		AddOns: cached, Clock: clock.RealClock{}, Workers: 2,
		Configurer: configurations.Configurer, Watch: configurations.Watch,
		Agents: template.NewRegistry(mgr.GetClient(), cached, configurations.Configurer, names.NamespaceHub),
	}
	indexer := mgr.GetFieldIndexer()
	require.NoError(t, errors.Join(
		cached.Index(t.Context(), indexer), deployer.Index(t.Context(), indexer),
		addonconfig.Index(t.Context(), cached, indexer),
	))
	require.NoError(t, configurations.Rollout.SetupWithManager(mgr))
	require.NoError(t, deployer.SetupWithManager(mgr))
	suite.StartManager(t, "the hub manager", mgr)
}
