package agent

import (
	"context"
	"fmt"
	"math"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/agent/addon"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
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
		Scheme: a.scheme, Logger: ctrl.LoggerFrom(ctx), Cache: a.hostCache(clusterName), NewCache: independentCache,
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
		&corev1.Node{}: {Transform: agentcluster.StripNode},
	})
}

// newSpoke returns the managed cluster: the manager itself, or in hosted mode another cluster that mgr will start.
func (a *agent) newSpoke(mgr ctrl.Manager, clusterName string) (cluster.Cluster, error) {
	if !a.hosted {
		return mgr, nil
	}
	return a.newCluster(mgr, a.spoke, map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: addon.SecretSelector(clusterName)},
		&corev1.Node{}:   {Transform: agentcluster.StripNode},
	})
}

// newHub returns the hub as far as it concerns one managed cluster; mgr will start it.
func (a *agent) newHub(mgr ctrl.Manager, config *rest.Config, clusterName string) (cluster.Cluster, error) {
	own := cache.ByObject{Namespaces: map[string]cache.Config{clusterName: {}}}
	return a.newCluster(mgr, config, map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Field: fields.OneTermEqualSelector("metadata.name", clusterName)},
		&certificatesv1.CertificateSigningRequest{}: {
			Label: labels.SelectorFromSet(labels.Set{names.LabelClusterName: clusterName}),
		},
		&addonv1alpha1.ManagedClusterAddOn{}: own,
		&addonv1beta1.ManagedClusterAddOn{}:  own,
		&workv1.ManifestWork{}:               own,
	})
}

func (a *agent) newCluster(
	mgr ctrl.Manager, config *rest.Config, holds map[client.Object]cache.ByObject,
) (cluster.Cluster, error) {
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme, o.Logger = a.scheme, mgr.GetLogger()
		o.Cache, o.NewCache = options(holds), independentCache
	})
	if err != nil {
		return nil, fmt.Errorf("building the client of %s: %w", config.Host, err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding the client of %s: %w", config.Host, err)
	}
	return c, nil
}

// options are what all caches have in common: no managed fields, no reads that would start a watch unasked, and copies
// only where they are made.
func options(holds map[client.Object]cache.ByObject) cache.Options {
	return cache.Options{
		ByObject: holds, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
	}
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
