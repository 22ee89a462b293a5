package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/cluster"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/hub/clusterset"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/hub/numbers"
	"github.com/spokelet/spokelet/hub/placement"
	"github.com/spokelet/spokelet/hub/setbinding"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/hub/token"
	"github.com/spokelet/spokelet/hub/window"
	"github.com/spokelet/spokelet/hub/work"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

// reconciler is a reconciler that can be added to a manager.
type reconciler interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// setup adds all reconcilers to the manager, and the field indexes to its cache.
func setup(ctx context.Context, mgr *hubprocess.Manager, c Config, foreignWorks cache.Cache) error {
	now := clock.RealClock{}
	addOns, err := addonapi.NewClient(mgr.GetClient(), mgr.GetRESTMapper(), mgr.Wire)
	trusted, failed := newAddOnsClient(mgr, c.Namespace)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	placements := newPlacements(mgr, c.Placement, now)
	configs, err := newConfigurations(mgr, c, addOns, placements)
	gates, unknown := gate.NewReader(ctx, addOns, mgr.GetAPIReader())
	renders, failed := template.NewRenders(metrics.Registry)
	if err := errors.Join(err, unknown, failed); err != nil {
		return err
	}
	configs.follow(gates)
	agents := append(slices.Clone(c.Agents),
		&template.Registry{
			Configs: mgr.GetClient(), AddOns: addOns, Configurer: configs.configurer, Home: c.Namespace, Renders: renders,
		})
	deployer := &deploy.Reconciler{
		Client: mgr.GetClient(), Bindings: trusted, Live: mgr.GetAPIReader(), AddOns: addOns, Agents: agents,
		Configurer: configs.configurer, Watch: configs.watch, Gates: gates,
		Recorder: mgr.GetEventRecorder(deploy.Name), Home: c.Namespace, Clock: now, Workers: c.Workers,
		Hosting: c.hosting(), Sets: mgr.GetClient(), AllNamespaces: true,
	}
	if err := index(ctx, mgr.GetFieldIndexer(), addOns, deployer); err != nil {
		return err
	}
	reconcilers := []reconciler{
		&cluster.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), AddOns: addOns, ForeignWorks: foreignWorks,
			Trust: c.trust(), UnacceptedLife: c.unacceptedLife(), Recorder: mgr.GetEventRecorder(cluster.Name),
			Labels: c.ClusterLabels,
			Meter:  meter.New(now), Clock: now, Workers: c.Workers,
		},
		&approval.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: trusted, Home: c.Namespace, AddOns: addOns,
			UnmarkedCAs: c.TrustAsOCM, Agents: agents, Configurer: configs.configurer.Reading(), Trust: c.trust(), Clock: now,
			Random: rand.Reader, MaxLifetime: c.MaxAddOnCertificateLifetime, Workers: c.Workers, Metrics: metrics.Registry,
			Identity: approval.IdentityConfirmed,
		},
		&install.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), AddOns: addOns,
			Recorder: mgr.GetEventRecorder(install.Name), Clock: now, Workers: c.Workers, Placements: placements,
			Gates:      gates,
			Limit:      install.Limit{Percent: c.RemovalLimitPercent, Clusters: c.RemovalLimitClusters},
			TrustAsOCM: c.TrustAsOCM,
		},
		configs.roller,
		deployer,
	}
	optional, err := optionalReconcilers(mgr, c, placements.Passes, gates)
	if err != nil {
		return err
	}
	for _, r := range slices.Concat(reconcilers, smallReconcilers(mgr, addOns, gates, c.Workers), optional) {
		if err := r.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("registering %T: %w", r, err)
		}
	}
	return nil
}

// smallReconcilers returns those that have what all have: of tokens, of cluster sets and of their bindings, and what
// counts the fleet.
func smallReconcilers(mgr ctrl.Manager, addOns addonapi.Client, gates *gate.Reader, workers int) []reconciler {
	now := clock.RealClock{}
	return []reconciler{
		&token.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), AddOns: addOns, Clock: now, Workers: workers,
		},
		&clusterset.Reconciler{Client: mgr.GetClient(), Clock: now, Workers: workers},
		&setbinding.Reconciler{Client: mgr.GetClient(), Clock: now, Workers: workers},
		&numbers.Numbers{Client: mgr.GetClient(), AddOns: addOns, Gates: gates, Registry: metrics.Registry, Clock: now},
	}
}

// newPlacements returns what is known of Placements, which this hub manager schedules or another program.
func newPlacements(mgr ctrl.Manager, own bool, now clock.PassiveClock) *fleet.Placements {
	placements := &fleet.Placements{Client: mgr.GetClient(), Own: own, Clock: now}
	if own {
		placements.Passes = &fleet.Passes{}
	}
	return placements
}

// index adds the field indexes.
func index(ctx context.Context, to client.FieldIndexer, addOns addonapi.Client, deployer *deploy.Reconciler) error {
	return errors.Join(
		addOns.Index(ctx, to), approval.Index(ctx, to), cluster.Index(ctx, to), deployer.Index(ctx, to),
		addonconfig.Index(ctx, addOns, to),
	)
}

// optionalReconcilers returns the reconcilers that the configuration turns on.
func optionalReconcilers(
	mgr ctrl.Manager, c Config, passes *fleet.Passes, gates *gate.Reader,
) ([]reconciler, error) {
	var all []reconciler
	now := clock.RealClock{}
	if gates != nil {
		all = append(all, &window.Reconciler{Client: mgr.GetClient(), Clock: now, Workers: c.Workers})
	}
	if c.Placement {
		all = append(all, &placement.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: now, Workers: c.Workers, Passes: passes,
		})
	}
	if c.WorkTTL {
		works, err := newWorksClient(mgr)
		if err != nil {
			return nil, err
		}
		all = append(all, &work.Reconciler{
			Works: works, OfAddOns: mgr.GetClient(), Clock: now, Workers: c.Workers,
		})
	}
	return all, nil
}

// newWorksClient returns a client of ManifestWorks without a cache.
func newWorksClient(mgr ctrl.Manager) (client.WithWatch, error) {
	works, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of ManifestWorks: %w", err)
	}
	return works, nil
}

// newAddOnsClient returns a client without a cache that impersonates the account of add-ons, whose only rights are
// those that administrators granted for add-ons (docs/adr/0013-trust-on-the-hub.md). The API server adds the groups of
// a ServiceAccount.
func newAddOnsClient(mgr ctrl.Manager, namespace string) (client.Client, error) {
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.Impersonate = rest.ImpersonationConfig{UserName: addOnsUser(namespace)}
	c, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("building the client that acts as ServiceAccount %s: %w", names.ServiceAccountAddons, err)
	}
	return c, nil
}
