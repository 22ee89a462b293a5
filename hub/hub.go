package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/command"
)

const (
	// leaseName is the leader lease in the namespace of the hub manager.
	leaseName = "spokelet-hub"
	// leaseDuration, renewDeadline and retryPeriod are how leadership changes hands: at once when the leader ends in
	// good order, after leaseDuration when it does not.
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 5 * time.Second
)

// Run runs the hub manager until ctx ends, which is no error. It logs to the logger in ctx, or to standard error where
// there is none. An error is a configuration that cannot work, a hub that cannot be reached at the start or whose
// admission policies are not in force, or a leadership that was lost.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	ctx = command.WithLogger(ctx, os.Stderr, c.Verbosity)
	cfg, err := restConfig(c)
	if err != nil {
		return err
	}
	conv, err := conversion(c)
	if err != nil {
		return err
	}
	if c.InstallCRDs {
		if err := InstallCRDs(ctx, cfg, conv); err != nil {
			return fmt.Errorf("installing the definitions: %w", err)
		}
	}
	// Where ctx has ended meanwhile, the manager ends as soon as it starts, in good order.
	if err := checkPolicies(ctx, c, cfg); err != nil && ctx.Err() == nil {
		return err
	}
	mgr, err := newManager(ctx, c, cfg)
	if err != nil {
		return err
	}
	if err := removeObsolete(mgr); err != nil {
		return err
	}
	if c.WebhookCertDir != "" {
		if err := addWebhook(mgr, c, cfg); err != nil {
			return err
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the hub manager: %w", err)
	}
	return nil
}

// restConfig returns how the hub is reached. Without a limit of our own, priority and fairness of the API server rule.
func restConfig(c Config) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the hub: %w", err)
	}
	cfg.UserAgent = fieldManager
	cfg.QPS, cfg.Burst = c.QPS, c.Burst
	if c.QPS == 0 {
		cfg.QPS = -1
	}
	return cfg, nil
}

// newManager returns a manager with all reconcilers.
func newManager(ctx context.Context, c Config, cfg *rest.Config) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	wire, err := addonapi.DetectAt(cfg, nil)
	if err != nil {
		return nil, err
	}
	options, err := cacheOptions()
	if err != nil {
		return nil, err
	}
	versions := newVersions(ctx, cfg, wire)
	options.DefaultWatchErrorHandler = versions.WatchError
	durations := []time.Duration{leaseDuration, renewDeadline, retryPeriod}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: ctrl.LoggerFrom(ctx), Cache: options,
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection: c.LeaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: c.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &durations[0], RenewDeadline: &durations[1], RetryPeriod: &durations[2],
		HealthProbeBindAddress: c.HealthAddress,
		Metrics:                metricsserver.Options{BindAddress: c.MetricsAddress},
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	if err := mgr.Add(versions); err != nil {
		return nil, fmt.Errorf("registering the watch of the versions that the hub serves: %w", err)
	}
	foreign, err := newForeignWorks(mgr, scheme, cfg)
	if err != nil {
		return nil, err
	}
	if err := setup(ctx, mgr, c, wire, foreign.GetCache()); err != nil {
		return nil, err
	}
	return mgr, addChecks(mgr)
}

// newForeignWorks adds a second cache to the manager, of ManifestWorks that do not belong to add-ons.
func newForeignWorks(mgr ctrl.Manager, scheme *runtime.Scheme, cfg *rest.Config) (ctrlcluster.Cluster, error) {
	options, err := foreignWorkOptions()
	if err != nil {
		return nil, err
	}
	foreign, err := ctrlcluster.New(cfg, func(o *ctrlcluster.Options) {
		o.Scheme, o.Cache, o.Logger = scheme, options, mgr.GetLogger()
	})
	if err != nil {
		return nil, fmt.Errorf("building the cache of other ManifestWorks: %w", err)
	}
	if err := mgr.Add(foreign); err != nil {
		return nil, fmt.Errorf("registering the cache of other ManifestWorks: %w", err)
	}
	return foreign, nil
}

// newVersions notices when the hub no longer serves the version of add-ons that this process uses. All reconcilers are
// built for one version, so the process ends and is started again with the other one.
func newVersions(ctx context.Context, cfg *rest.Config, wire addonapi.Wire) *addonapi.Versions {
	v := addonapi.NewVersions()
	v.Wire = wire
	v.Detect = func() (addonapi.Wire, error) { return addonapi.DetectAt(cfg, nil) }
	v.Changed = func(now addonapi.Wire) error {
		return fmt.Errorf("the hub serves add-ons in %s and no longer in %s: the hub manager has to be started again, "+
			"and then uses %s", now, wire, now)
	}
	v.Missing = func(why error) {
		if why == nil {
			ctrl.LoggerFrom(ctx).Info("the hub serves add-ons again", "version", wire)
			return
		}
		ctrl.LoggerFrom(ctx).Error(why, "the add-ons of the hub cannot be seen, looking again")
	}
	return v
}

// addChecks says that the manager lives, and that it is ready when its cache is filled.
func addChecks(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("registering the health check: %w", err)
	}
	synced := func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("cache", synced); err != nil {
		return fmt.Errorf("registering the readiness check: %w", err)
	}
	return nil
}
