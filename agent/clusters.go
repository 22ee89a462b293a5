package agent

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/agent/addon"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// shutdownTimeout bounds the end of a phase.
const shutdownTimeout = 10 * time.Second

// syncTimeout is how long a controller waits for its caches: as long as it takes. A hub that does not respond, or has
// not accepted the cluster yet, is not a reason to give up.
const syncTimeout = time.Duration(math.MaxInt64)

// newManager returns the manager of a phase, for the cluster that the agent runs on.
func (a *agent) newManager(ctx context.Context) (ctrl.Manager, error) {
	unchecked, timeout := true, shutdownTimeout
	options := ctrl.Options{
		Scheme: a.scheme, Logger: ctrl.LoggerFrom(ctx), NewCache: a.newCache,
		Cache:                  a.withErrorLog(ctrl.LoggerFrom(ctx), a.hostCache()),
		Metrics:                metricsserver.Options{BindAddress: a.config.MetricsAddress},
		HealthProbeBindAddress: off, GracefulShutdownTimeout: &timeout,
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		Controller:  controllerconfig.Controller{CacheSyncTimeout: syncTimeout, SkipNameValidation: &unchecked},
	}
	if a.config.PprofAddress != off {
		options.PprofBindAddress = a.config.PprofAddress
	}
	mgr, err := ctrl.NewManager(a.host, options)
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	return containing{mgr}, nil
}

// containing is a manager that contains what runs in it: a panic ends the phase, and not the process.
type containing struct{ ctrl.Manager }

// Add adds a Runnable. Controllers and clusters contain themselves.
func (c containing) Add(runnable manager.Runnable) error {
	switch runnable.(type) {
	case manager.LeaderElectionRunnable, cluster.Cluster:
		return c.Manager.Add(runnable)
	}
	return c.Manager.Add(manager.RunnableFunc(func(ctx context.Context) (err error) {
		defect := reconcile.Contain(ctx, fmt.Sprintf("%T", runnable), func() { err = runnable.Start(ctx) })
		if defect != nil {
			return defect
		}
		return err
	}))
}

// hostCache returns the cache of the cluster that the agent runs on: the Secrets of the agent's namespace and, outside
// hosted mode, nodes and AppliedManifestWorks. The Secrets of add-ons have a cache of their own: see newAddonHost.
func (a *agent) hostCache() cache.Options {
	objects := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{a.config.Namespace: {}}},
	}
	if !a.hosted() { // a hosting cluster has no definition of AppliedManifestWorks, and a cache asks for each kind
		objects[&corev1.Node{}] = cache.ByObject{Transform: agentcluster.StripNode}
		objects[&workv1.AppliedManifestWork{}] = cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true)}
	}
	return options(objects)
}

// addonNamespaces returns the namespaces with Secrets on the cluster that the agent runs on: its own one, and those of
// the add-ons there.
func (a *agent) addonNamespaces(clusterName string) map[string]cache.Config {
	credentials := cache.Config{LabelSelector: addon.SecretSelector(clusterName)}
	namespaces := map[string]cache.Config{}
	for _, name := range a.config.HostedAddonNamespaces {
		namespaces[name] = credentials
	}
	if len(namespaces) == 0 {
		namespaces[cache.AllNamespaces] = credentials
	}
	namespaces[a.config.Namespace] = cache.Config{}
	return namespaces
}

// newAddonHost returns the cluster that the agent runs on as its add-ons need it; mgr starts it. It has a cache of its
// own, because a controller waits until all that it watches may be read. So the agent's own credential is renewed where
// the agent may not read the Secrets of add-ons.
func (a *agent) newAddonHost(mgr ctrl.Manager, clusterName string) (cluster.Cluster, error) {
	mapper := func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
	return a.newCluster(mgr, a.host, mapper, options(map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: a.addonNamespaces(clusterName)},
	}))
}

// newSpoke returns the managed cluster: the manager itself, or in hosted mode another cluster that mgr will start.
func (a *agent) newSpoke(mgr ctrl.Manager, clusterName string) (cluster.Cluster, error) {
	if !a.hosted() {
		return mgr, nil
	}
	return a.newCluster(mgr, a.spoke, a.spokeMapper, options(map[client.Object]cache.ByObject{
		&corev1.Secret{}:              {Label: addon.SecretSelector(clusterName)},
		&corev1.Node{}:                {Transform: agentcluster.StripNode},
		&workv1.AppliedManifestWork{}: {UnsafeDisableDeepCopy: ptr.To(true)},
	}))
}

// newHub returns the hub as far as it concerns one managed cluster; mgr starts it. failed, unless nil, is called with
// the errors of watches.
func (a *agent) newHub(
	mgr ctrl.Manager, config *rest.Config, clusterName string, failed func(error),
) (cluster.Cluster, error) {
	opts := a.withErrorLog(mgr.GetLogger(), options(hubCache(clusterName)))
	if handle := opts.DefaultWatchErrorHandler; failed != nil {
		opts.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
			handle(ctx, r, err)
			failed(err)
		}
	}
	return a.newCluster(mgr, config, a.hubMapper, opts)
}

// hubCache returns the objects that the agent caches of the hub. Anybody may create certificate requests with the label
// of the cluster, so none are cached: each one of the agent's own is watched by its name while it waits. ManifestWorks
// are large and read often, so reads do not copy them, nor AppliedManifestWorks: only agent/work reads them, and it
// changes none.
func hubCache(clusterName string) map[client.Object]cache.ByObject {
	own := cache.ByObject{Namespaces: map[string]cache.Config{clusterName: {}}}
	works := own
	works.UnsafeDisableDeepCopy, works.Transform = ptr.To(true), work.Transform
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {
			Field: fields.OneTermEqualSelector("metadata.name", clusterName), Transform: agentcluster.StripManagedCluster,
		},
		&addonv1alpha1.ManagedClusterAddOn{}: own,
		&addonv1beta1.ManagedClusterAddOn{}:  own,
		&workv1.ManifestWork{}:               works,
	}
}

func (a *agent) newCluster(
	mgr ctrl.Manager, config *rest.Config, mapper mapperProvider, opts cache.Options,
) (cluster.Cluster, error) {
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme, o.Logger, o.MapperProvider = a.scheme, mgr.GetLogger(), mapper
		o.Cache, o.NewCache = a.withErrorLog(mgr.GetLogger(), opts), a.newCache
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of %s: %w", config.Host, err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding the client of %s: %w", config.Host, err)
	}
	return c, nil
}

// mapperProvider returns the mapper of kinds to resources of a cluster.
type mapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error)

// hubMapper is the mapper of the hub.
func (a *agent) hubMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	return a.newStaticMapper(config, httpClient, map[client.Object]meta.RESTScope{
		&clusterv1.ManagedCluster{}:                 meta.RESTScopeRoot,
		&certificatesv1.CertificateSigningRequest{}: meta.RESTScopeRoot,
		&addonv1alpha1.ManagedClusterAddOn{}:        meta.RESTScopeNamespace,
		&addonv1beta1.ManagedClusterAddOn{}:         meta.RESTScopeNamespace,
		&workv1.ManifestWork{}:                      meta.RESTScopeNamespace,
	})
}

// spokeMapper is the mapper of a managed cluster elsewhere.
func (a *agent) spokeMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	return a.newStaticMapper(config, httpClient, map[client.Object]meta.RESTScope{
		&corev1.Secret{}:              meta.RESTScopeNamespace,
		&corev1.Node{}:                meta.RESTScopeRoot,
		&workv1.AppliedManifestWork{}: meta.RESTScopeRoot,
	})
}

// newStaticMapper returns a mapper that maps some kinds without a request. So the clients of a cluster that does not
// respond, or that rejects the credential, can be built, and the phase handles that.
func (a *agent) newStaticMapper(
	config *rest.Config, httpClient *http.Client, kinds map[client.Object]meta.RESTScope,
) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	for object, scope := range kinds {
		kind, err := apiutil.GVKForObject(object, a.scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of an object: %w", err)
		}
		known.Add(kind, scope)
	}
	return staticMapper{RESTMapper: dynamic, known: known}, nil
}

// staticMapper maps known kinds by itself, and all others by discovery.
type staticMapper struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (k staticMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, err := k.known.RESTMapping(kind, versions...); err == nil && len(versions) > 0 {
		return mapping, nil
	}
	return k.RESTMapper.RESTMapping(kind, versions...)
}

// options returns what all caches have in common: they drop managed fields, a read never starts a watch, and they
// notice a store that was restored from a backup.
func options(objects map[client.Object]cache.ByObject) cache.Options {
	return cache.Options{
		ByObject: objects, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
		NewInformer: watch.NewInformer,
	}
}

// withErrorLog makes a cache log one line per cause why its watches fail.
func (a *agent) withErrorLog(logger logr.Logger, o cache.Options) cache.Options {
	if o.DefaultWatchErrorHandler == nil {
		o.DefaultWatchErrorHandler = newWatchErrors(logger, a.clock).handle
	}
	return o
}

// newCache returns a cache whose informers do not wait for each other, and go on without objects that cannot be
// decoded. By default a controller waits for all informers of a cache, so that one kind that may not be listed would
// stop controllers that do not need it. A controller still waits for its own informers.
func (a *agent) newCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	c, err := a.objects.NewCache(config, opts)
	if err != nil {
		return nil, err
	}
	return independent{c}, nil
}

type independent struct{ cache.Cache }

// WaitForCacheSync does not wait.
func (independent) WaitForCacheSync(context.Context) bool { return true }
