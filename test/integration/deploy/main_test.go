// Package deploy_test runs the rollout and the deployment of template add-ons against a real control plane, with the
// rights that we ship and nothing more. The tests play the clusters: they write what an agent would.
package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/manager"
)

// What the tests share: one control plane with a hub manager on it, and clients of an administrator.
var (
	hub    *sandbox.ControlPlane
	admin  client.Client
	addOns addonapi.Client
)

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, setUp)) }

func setUp(ctx context.Context) (func(), error) {
	var err error
	hub, err = sandbox.Start(ctx, sandbox.Options{Name: "deploy", Audit: true})
	if err != nil {
		return nil, err
	}
	stop, err := startHub(ctx)
	if err != nil {
		hub.Stop()
		return nil, err
	}
	return func() { stop(); hub.Stop() }, nil
}

func startHub(ctx context.Context) (func(), error) {
	if err := hub.Apply(ctx, append(manifests.CRDs(), manifests.Hub()...)...); err != nil {
		return nil, err
	}
	scheme := newScheme()
	var err error
	if admin, err = client.New(hub.Admin(), client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	addOns = addonapi.Client{Client: admin}
	config, err := hub.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
	if err != nil {
		return nil, err
	}
	mgr, err := newManager(ctx, config, scheme)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(run) }()
	return func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				_, _ = fmt.Fprintln(os.Stderr, "the hub manager ended with:", err)
			}
		case <-time.After(time.Minute):
			_, _ = fmt.Fprintln(os.Stderr, "the hub manager did not end")
		}
	}, nil
}

func newManager(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, err
	}
	cached := addonapi.Client{Client: mgr.GetClient()}
	roller := &rollout.Reconciler{AddOns: cached, Client: mgr.GetClient(), Clock: clock.RealClock{}, Workers: 2}
	indexed := &deploy.Reconciler{AddOns: cached}
	if err := errors.Join(
		cached.Index(ctx, mgr.GetFieldIndexer()), roller.Index(ctx, mgr.GetFieldIndexer()),
		indexed.Index(ctx, mgr.GetFieldIndexer()),
	); err != nil {
		return nil, err
	}
	if err := roller.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	bindings, err := client.New(manager.AsAddOns(config), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Bindings: bindings, Live: mgr.GetAPIReader(), AddOns: cached, Clock: clock.RealClock{}, Workers: 2,
		Agents: template.Registry{Configs: mgr.GetClient(), AddOns: cached, Chooser: roller},
	}
	return mgr, deployer.SetupWithManager(mgr)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, clusterv1.Install, clusterv1beta1.Install,
		workv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
