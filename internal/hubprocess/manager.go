package hubprocess

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/version"
	"github.com/spokelet/spokelet/internal/watch"
)

// Program holds what a manager of controller-runtime needs to know of a program.
type Program struct {
	// Name is the program in messages, such as "the hub manager".
	Name string
	// Lease is the name of the leader lease in Namespace, and Election how replicas elect the leader.
	Lease, Namespace string
	Election         command.Election
	// MetricsAddress serves /metrics over http; Off is off.
	MetricsAddress string
	// Cache selects and transforms the objects of the cache.
	Cache cache.Options
}

// Manager is a manager of controller-runtime, and what its reconcilers and health checks need besides.
type Manager struct {
	ctrl.Manager
	// Wire is the API version of add-ons that the reconcilers have to use.
	Wire addonapi.Wire
	// Objects are the informers of the manager, and the objects that they cannot decode.
	Objects *decode.Objects
}

// NewManager returns a manager without reconcilers. It ends with an error when the hub no longer serves the API version
// of add-ons that it uses.
func NewManager(ctx context.Context, cfg *rest.Config, p Program) (*Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	wire, err := addonapi.DetectAt(cfg, nil)
	if err != nil {
		return nil, err
	}
	objects, err := decode.New(scheme, clock.RealClock{}, metrics.Registry)
	if err != nil {
		return nil, err
	}
	objects.Logger = ctrl.LoggerFrom(ctx)
	if p.Cache.ByObject, err = inWire(p.Cache.ByObject, scheme, wire); err != nil {
		return nil, err
	}
	versions := newVersions(ctx, cfg, wire, p.Name)
	p.Cache.DefaultWatchErrorHandler = versions.WatchError
	p.Cache.NewInformer = InPages(watch.NewInformer)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: ctrl.LoggerFrom(ctx), Cache: p.Cache, MapperProvider: newMapper(scheme),
		NewCache:       objects.NewCache,
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection: p.Election.LeaderElect, LeaderElectionID: p.Lease, LeaderElectionNamespace: p.Namespace,
		LeaderElectionReleaseOnCancel: true, LeaderElectionLabels: map[string]string{names.LabelVersion: version.Label()},
		LeaseDuration: &p.Election.LeaseDuration, RenewDeadline: &p.Election.RenewDeadline,
		RetryPeriod: &p.Election.RetryPeriod,
		// We serve health ourselves (AddChecks), because the library does not report the cause.
		HealthProbeBindAddress: Off,
		Metrics:                metricsserver.Options{BindAddress: p.MetricsAddress},
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	if err := mgr.Add(versions); err != nil {
		return nil, fmt.Errorf("registering the watch of the versions that the hub serves: %w", err)
	}
	return &Manager{Manager: mgr, Wire: wire, Objects: objects}, nil
}

// inWire returns the objects of a cache without add-ons of another version than the one in use: a cache asks the API
// server about each of its kinds, and fails to be built with one that is not served.
func inWire(
	all map[client.Object]cache.ByObject, scheme *runtime.Scheme, wire addonapi.Wire,
) (map[client.Object]cache.ByObject, error) {
	used := make(map[client.Object]cache.ByObject, len(all))
	for object, how := range all {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
		}
		if kind.Group != addonv1alpha1.GroupName || kind.Version == string(wire) {
			used[object] = how
		}
	}
	return used, nil
}

// Requires returns a selector with one requirement about a label.
func Requires(label string, op selection.Operator, values ...string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(label, op, values)
	if err != nil {
		return nil, fmt.Errorf("building the selector for label %s: %w", label, err)
	}
	return labels.NewSelector().Add(*requirement), nil
}
