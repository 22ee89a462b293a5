package hub

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/hub/definition"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/memory"
	"github.com/spokelet/spokelet/internal/watch"
)

const (
	// leaseName is the leader lease in the namespace of the hub manager.
	leaseName = "spokelet-hub"
	// reasonUndecodable is the reason of the Event about an object that cannot be decoded.
	reasonUndecodable = "Undecodable"
)

// Run runs the hub manager until ctx ends, which is not an error. It logs to the logger in ctx or, without one, to
// standard error. It fails if the configuration is invalid, if the hub is unreachable at the start or its admission
// policies are not in force, or if leadership is lost. With c.Uninstall it uninstalls the hub manager instead.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	ctx = command.WithLogger(ctx, os.Stderr, c.Verbosity)
	if err := command.HubManager.Tell(ctx, metrics.Registry); err != nil {
		return err
	}
	c.foreign.notes.Log(ctx)
	if c.TrustAsOCM {
		ctrl.LoggerFrom(ctx).Info("Warning: --trust-as-ocm is set, so the hub trusts more than it has to: docs/security.md " +
			"lists what that allows, and to whom")
	}
	cfg, err := hubprocess.Connection{
		Kubeconfig: c.Kubeconfig, UserAgent: fieldManager, QPS: c.QPS, Burst: c.Burst, Wrap: c.WrapTransport,
	}.Config()
	if err != nil {
		return err
	}
	if c.Uninstall {
		return uninstall(ctx, c, cfg, os.Stdout)
	}
	memory.SetLimit(ctrl.LoggerFrom(ctx))
	if c.GiveBackMemory {
		cfg.Wrap(memory.NewReleaser(clock.RealClock{}).Wrap)
	}
	s, err := newServing(ctx, c, cfg)
	if err != nil {
		return err
	}
	var findings []definition.Finding
	if c.InstallCRDs {
		if findings, err = InstallCRDs(ctx, cfg, s.client()); err != nil {
			return fmt.Errorf("installing the definitions: %w", err)
		}
	}
	// If ctx has ended, the manager exits in good order as soon as it starts.
	if err := checkPolicies(ctx, c, cfg); err != nil && ctx.Err() == nil {
		return err
	}
	mgr, err := newManager(ctx, c, cfg)
	if err != nil {
		return withFindings(err, findings)
	}
	if err := addConversion(mgr, c, s, findings); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the hub manager: %w", err)
	}
	return nil
}

// withFindings adds to an error about a version that is not served what was found on the definitions, which nobody
// would see otherwise: their Events are recorded only while the hub manager runs.
func withFindings(err error, findings []definition.Finding) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	for _, f := range findings {
		err = fmt.Errorf("%w\ndefinition %s: %s", err, f.Definition.Name, f.Message)
	}
	return err
}

// addConversion adds the webhook, the keeper of the conversion and the readiness checks to the manager.
func addConversion(mgr *hubprocess.Manager, c Config, s *serving, findings []definition.Finding) error {
	silent := func() error { return errors.New("no webhook is configured") }
	if s.served() {
		server, err := addWebhook(mgr, c, s)
		if err != nil {
			return err
		}
		started := server.StartedChecker()
		silent = func() error { return started(nil) }
	}
	keeper, err := newKeeper(mgr, c, s, silent)
	if err != nil {
		return err
	}
	keeper.Findings = findings
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("registering the keeper of the conversion: %w", err)
	}
	checks := []hubprocess.Check{
		hubprocess.CacheCheck(mgr), hubprocess.ObjectsCheck(mgr.Objects),
		{Name: "conversion", Fail: func(context.Context) error { return keeper.Ready() }},
	}
	if lines := c.foreign.notes.Lines(); len(lines) > 0 {
		checks = append(checks, hubprocess.Check{Name: "settings", Notes: func() []string { return lines }})
	}
	if c.TrustAsOCM {
		checks = append(checks, hubprocess.Check{
			Name: "trust", Notes: func() []string { return []string{"as OCM, see docs/security.md"} },
		})
	}
	return hubprocess.AddChecks(mgr, c.HealthAddress, checks...)
}

// newManager returns a manager with all reconcilers.
func newManager(ctx context.Context, c Config, cfg *rest.Config) (*hubprocess.Manager, error) {
	options, err := cacheOptions(c.Namespace)
	if err != nil {
		return nil, err
	}
	mgr, err := hubprocess.NewManager(ctx, cfg, hubprocess.Program{
		Name: "the hub manager", Lease: leaseName, Namespace: c.Namespace, Election: c.Election,
		MetricsAddress: c.MetricsAddress, Cache: options,
	})
	if err != nil {
		return nil, err
	}
	recorder := mgr.GetEventRecorder(fieldManager)
	mgr.Objects.Tell(func(bad decode.Bad) {
		recorder.Eventf(bad.Object(), nil, corev1.EventTypeWarning, reasonUndecodable, "Reading", "The hub manager cannot "+
			"decode the object, and leaves it and all that depends on it as it is: %s", bad.Cause)
	})
	if err := tellForeign(mgr, c); err != nil {
		return nil, err
	}
	foreign, err := newForeignWorks(mgr, cfg)
	if err != nil {
		return nil, err
	}
	if err := setup(ctx, mgr, c, foreign.GetCache()); err != nil {
		return nil, err
	}
	return mgr, nil
}

// tellForeign counts the settings without an effect, and tells by an Event which are not known.
func tellForeign(mgr *hubprocess.Manager, c Config) error {
	notes := &c.foreign.notes
	if err := notes.Count(metrics.Registry); err != nil {
		return err
	}
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		notes.Tell(ctx, mgr.GetConfig(), notes.Event(fieldManager, c.Namespace, clock.RealClock{}.Now()))
		return nil
	}))
	if err != nil {
		return fmt.Errorf("registering the Event about unknown settings: %w", err)
	}
	return nil
}

// newForeignWorks adds a second cache to the manager, for ManifestWorks that do not belong to add-ons.
func newForeignWorks(mgr *hubprocess.Manager, cfg *rest.Config) (ctrlcluster.Cluster, error) {
	options, err := foreignWorkOptions()
	if err != nil {
		return nil, err
	}
	options.NewInformer = hubprocess.InPages(watch.NewInformer)
	foreign, err := ctrlcluster.New(cfg, func(o *ctrlcluster.Options) {
		o.Scheme, o.Cache, o.Logger = mgr.GetScheme(), options, mgr.GetLogger()
		o.NewCache = mgr.Objects.NewCache
	})
	if err != nil {
		return nil, fmt.Errorf("building the cache of other ManifestWorks: %w", err)
	}
	if err := mgr.Add(foreign); err != nil {
		return nil, fmt.Errorf("registering the cache of other ManifestWorks: %w", err)
	}
	return foreign, nil
}
