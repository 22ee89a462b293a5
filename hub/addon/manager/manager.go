package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/hashes"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/memory"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// Run runs add-ons until ctx ends, which is not an error. It logs to the logger in ctx or, without one, to standard
// error. It fails if the configuration or an add-on is invalid, if the hub is unreachable at the start, or if
// leadership is lost.
func Run(ctx context.Context, c Config, agents ...addon.Agent) error {
	own, err := newAddOns(agents)
	if err != nil {
		return err
	}
	c.complete(agents)
	if err := c.validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	ctx = command.WithLogger(ctx, os.Stderr, c.Verbosity)
	cfg, err := hubprocess.Connection{
		Kubeconfig: c.Kubeconfig, UserAgent: c.Name, QPS: c.QPS, Burst: c.Burst, Wrap: c.WrapTransport,
	}.Config()
	if err != nil {
		return err
	}
	memory.SetLimit(ctrl.LoggerFrom(ctx))
	cfg.Wrap(memory.NewReleaser(clock.RealClock{}).Wrap)
	mgr, err := newManager(ctx, c, cfg, own)
	if err != nil {
		return err
	}
	if err := hubprocess.AddChecks(mgr, c.HealthAddress, hubprocess.CacheCheck(mgr),
		hubprocess.ObjectsCheck(mgr.Objects)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("running add-ons", "addons", own.names, "name", c.Name, "namespace", c.Namespace)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the add-ons: %w", err)
	}
	return nil
}

// addOns are the add-ons of a program.
type addOns struct {
	addon.Fixed

	// names are their names, in order.
	names []string
}

func newAddOns(agents []addon.Agent) (addOns, error) {
	if len(agents) == 0 {
		return addOns{}, errors.New("there is no add-on to run")
	}
	if slices.Contains(agents, nil) {
		return addOns{}, errors.New("an add-on to run is nil")
	}
	fixed, err := addon.NewFixed(agents...)
	if err != nil {
		return addOns{}, err
	}
	own := addOns{Fixed: fixed}
	for name := range fixed {
		own.names = append(own.names, name)
	}
	slices.Sort(own.names)
	return own, nil
}

// supports reports whether one of the add-ons understands a kind of configuration.
func (a addOns) supports(name string, kind addonv1beta1.ConfigGroupResource) bool {
	agent, found := a.Fixed[name]
	return found && slices.Contains(agent.About().SupportedConfigs, kind)
}

// kinds returns the kinds of configuration that any of the add-ons understands.
func (a addOns) kinds() []addonv1beta1.ConfigGroupResource {
	kinds := []addonv1beta1.ConfigGroupResource{}
	for _, name := range a.names {
		kinds = append(kinds, a.Fixed[name].About().SupportedConfigs...)
	}
	return kinds
}

// newManager returns a manager with the reconcilers of the add-ons.
func newManager(ctx context.Context, c Config, cfg *rest.Config, own addOns) (*hubprocess.Manager, error) {
	options, err := cacheOptions(c.HubNamespace, own.names)
	if err != nil {
		return nil, err
	}
	mgr, err := hubprocess.NewManager(ctx, cfg, hubprocess.Program{
		Name: "the program of the add-ons", Lease: c.Name, Namespace: c.Namespace, Election: c.election(),
		MetricsAddress: c.MetricsAddress, Cache: options,
	})
	if err != nil {
		return nil, err
	}
	return mgr, setup(ctx, mgr, c, own)
}

// setup adds the reconcilers to the manager, and the field indexes to its cache.
func setup(ctx context.Context, mgr *hubprocess.Manager, c Config, own addOns) error {
	api, err := addonapi.NewClient(mgr.GetClient(), mgr.GetRESTMapper(), mgr.Wire)
	if err != nil {
		return err
	}
	changed := objectwatch.NewChanges(2)
	others, err := objectwatch.New(mgr.GetConfig(), c.WatchedConfigs, changed.Send)
	if err != nil {
		return err
	}
	if err := mgr.Add(others); err != nil {
		return fmt.Errorf("registering the watch of configurations of any kind: %w", err)
	}
	store := &addonconfig.Store{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Versions: api.Configs, Home: c.HubNamespace, Others: others,
		Limit: c.WatchedConfigs, Kinds: own.kinds(),
	}
	follower := &configure.Follower{
		Configurer: &configure.Configurer{
			AddOns: api, Store: store, Changed: changed.Receiver(0), Precedence: c.ConfigPrecedence,
		},
		Supports: own.supports,
	}
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Bindings: mgr.GetClient(), Live: mgr.GetAPIReader(), Accounts: mgr.GetAPIReader(),
		AddOns: api, Agents: own, Configurer: follower, Watch: own.only(follower.Watch),
		Recorder: mgr.GetEventRecorder(deploy.Name), Home: c.HubNamespace, Account: c.account(),
		Clock: clock.RealClock{}, Workers: c.Workers, Sets: mgr.GetAPIReader(),
		Hosting: hosting.Rules{RequireConsent: c.RequireHostingConsent && !c.TrustAsOCM, TrustAsOCM: c.TrustAsOCM},
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(
		api.IndexAddOns(ctx, indexer), approval.Index(ctx, indexer), deployer.Index(ctx, indexer),
		addonconfig.Index(ctx, api, indexer),
	); err != nil {
		return err
	}
	for _, r := range []interface{ SetupWithManager(mgr ctrl.Manager) error }{
		deployer,
		&approval.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: mgr.GetAPIReader(), Home: c.Namespace,
			UnmarkedCAs: true, Account: c.account(), AddOns: api, Agents: own, Configurer: follower, Clock: clock.RealClock{},
			Random: rand.Reader, Workers: c.Workers, Metrics: metrics.Registry, Identity: c.identity(),
		},
		&hashes.Reconciler{
			AddOns: api, Store: store, Supports: own.supports, Changed: changed.Receiver(1), Clock: clock.RealClock{},
		},
	} {
		if err := r.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("registering %T: %w", r, err)
		}
	}
	return nil
}

// only restricts a controller to the add-ons of this program, besides what watch adds. The cache may have others.
func (a addOns) only(watch func(*builder.Builder) *builder.Builder) func(*builder.Builder) *builder.Builder {
	return func(b *builder.Builder) *builder.Builder {
		return watch(b).WithEventFilter(predicate.NewPredicateFuncs(func(o client.Object) bool {
			if !addonapi.IsAddOn(o) {
				return true
			}
			_, mine := a.Fixed[o.GetName()]
			return mine
		}))
	}
}
