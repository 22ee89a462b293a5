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
	"k8s.io/apimachinery/pkg/labels"
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
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/agent/addon"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// grace is how long a phase that ends may take to let go.
const grace = 10 * time.Second

// patience is how long a controller waits for its caches: as long as it takes. A hub that is away, or has not accepted
// the cluster yet, is no reason to give up.
const patience = time.Duration(math.MaxInt64)

// newManager returns the manager of a phase, whose cluster is the one that the agent runs on. While serving,
// clusterName is given and the caches hold what serving needs too.
func (a *agent) newManager(ctx context.Context, clusterName string) (ctrl.Manager, error) {
	unchecked, within := true, grace
	options := ctrl.Options{
		Scheme: a.scheme, Logger: ctrl.LoggerFrom(ctx), NewCache: independentCache,
		Cache:                  a.tolerant(ctrl.LoggerFrom(ctx), a.hostCache(clusterName)),
		Metrics:                metricsserver.Options{BindAddress: a.config.MetricsAddress},
		HealthProbeBindAddress: off, GracefulShutdownTimeout: &within,
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		Controller:  controllerconfig.Controller{CacheSyncTimeout: patience, SkipNameValidation: &unchecked},
	}
	if a.config.PprofAddress != off {
		options.PprofBindAddress = a.config.PprofAddress
	}
	mgr, err := ctrl.NewManager(a.host, options)
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	return mgr, nil
}

// hostCache holds the Secrets of the agent's namespace, and while serving the credentials of the add-ons and, outside
// hosted mode, what the managed cluster is asked for.
func (a *agent) hostCache(clusterName string) cache.Options {
	if clusterName == "" {
		return options(map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{a.config.Namespace: {}}},
		})
	}
	return options(map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			a.config.Namespace:  {},
			cache.AllNamespaces: {LabelSelector: addon.SecretSelector(clusterName)},
		}},
		&corev1.Node{}:                {Transform: agentcluster.StripNode},
		&workv1.AppliedManifestWork{}: {UnsafeDisableDeepCopy: ptr.To(true)},
	})
}

// newSpoke returns the managed cluster: the manager itself, or in hosted mode another cluster that mgr will start.
func (a *agent) newSpoke(mgr ctrl.Manager, clusterName string) (cluster.Cluster, error) {
	if !a.hosted {
		return mgr, nil
	}
	return a.newCluster(mgr, a.spoke, apiutil.NewDynamicRESTMapper, options(map[client.Object]cache.ByObject{
		&corev1.Secret{}:              {Label: addon.SecretSelector(clusterName)},
		&corev1.Node{}:                {Transform: agentcluster.StripNode},
		&workv1.AppliedManifestWork{}: {UnsafeDisableDeepCopy: ptr.To(true)},
	}))
}

// newHub returns the hub as far as it concerns one managed cluster; mgr will start it. user is the agent's user name
// there, empty while it joins. failed is told what watches fail with; nil tells nobody.
func (a *agent) newHub(
	mgr ctrl.Manager, config *rest.Config, clusterName, user string, failed func(error),
) (cluster.Cluster, error) {
	holds := a.tolerant(mgr.GetLogger(), options(hubHolds(clusterName, user)))
	if tell := holds.DefaultWatchErrorHandler; failed != nil {
		holds.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
			tell(ctx, r, err)
			failed(err)
		}
	}
	return a.newCluster(mgr, config, a.hubMapper, holds)
}

// hubHolds says what the agent keeps of the hub. Anybody may create certificate requests with the label of the cluster,
// so not much is kept of those that the agent did not make. Works are large and looked at often, so they, like the
// records of them on the spoke, are read where they are kept and not copied: nobody but agent/work reads them, and it
// changes none.
func hubHolds(clusterName, user string) map[client.Object]cache.ByObject {
	own := cache.ByObject{Namespaces: map[string]cache.Config{clusterName: {}}}
	works := own
	works.UnsafeDisableDeepCopy = ptr.To(true)
	return map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {
			Field: fields.OneTermEqualSelector("metadata.name", clusterName), Transform: agentcluster.StripManagedCluster,
		},
		&certificatesv1.CertificateSigningRequest{}: {
			Label:     labels.SelectorFromSet(labels.Set{names.LabelClusterName: clusterName}),
			Transform: csr.TrimForAgent(user),
		},
		&addonv1alpha1.ManagedClusterAddOn{}: own,
		&addonv1beta1.ManagedClusterAddOn{}:  own,
		&workv1.ManifestWork{}:               works,
	}
}

func (a *agent) newCluster(
	mgr ctrl.Manager, config *rest.Config, mapper mapperProvider, holds cache.Options,
) (cluster.Cluster, error) {
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme, o.Logger, o.MapperProvider = a.scheme, mgr.GetLogger(), mapper
		o.Cache, o.NewCache = a.tolerant(mgr.GetLogger(), holds), independentCache
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of %s: %w", config.Host, err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding the client of %s: %w", config.Host, err)
	}
	return c, nil
}

// mapperProvider makes the mapper of kinds to resources for a cluster.
type mapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error)

// hubMapper knows the kinds of the protocol without asking. So the clients of a hub that is away, or that refuses the
// credential, can be built, and it is the phase that meets the hub, with all its ways out.
func (a *agent) hubMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	for object, scope := range map[client.Object]meta.RESTScope{
		&clusterv1.ManagedCluster{}:                 meta.RESTScopeRoot,
		&certificatesv1.CertificateSigningRequest{}: meta.RESTScopeRoot,
		&addonv1alpha1.ManagedClusterAddOn{}:        meta.RESTScopeNamespace,
		&addonv1beta1.ManagedClusterAddOn{}:         meta.RESTScopeNamespace,
		&workv1.ManifestWork{}:                      meta.RESTScopeNamespace,
	} {
		kind, err := apiutil.GVKForObject(object, a.scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of an object: %w", err)
		}
		known.Add(kind, scope)
	}
	return knowing{RESTMapper: dynamic, known: known}, nil
}

// knowing answers for the kinds that it knows, and asks for all others.
type knowing struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (k knowing) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, err := k.known.RESTMapping(kind, versions...); err == nil && len(versions) > 0 {
		return mapping, nil
	}
	return k.RESTMapper.RESTMapping(kind, versions...)
}

// options are what all caches have in common: no managed fields, no reads that would start a watch unasked, and copies
// only where they are made.
func options(holds map[client.Object]cache.ByObject) cache.Options {
	return cache.Options{
		ByObject: holds, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
	}
}

// tolerant makes a cache write one line into the log for one cause why its watches fail.
func (a *agent) tolerant(logger logr.Logger, o cache.Options) cache.Options {
	if o.DefaultWatchErrorHandler == nil {
		o.DefaultWatchErrorHandler = newWatchErrors(logger, a.clock).handle
	}
	return o
}

// independentCache returns a cache whose informers do not wait for each other. Elsewhere a controller waits for all
// informers of a cache; so one kind that may not be listed would stop controllers that have nothing to do with it. The
// informer that a controller itself wants is still waited for.
func independentCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	return independent{c}, nil
}

type independent struct{ cache.Cache }

// WaitForCacheSync does not wait.
func (independent) WaitForCacheSync(context.Context) bool { return true }
