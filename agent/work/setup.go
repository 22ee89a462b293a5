package work

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// HubHash returns the identity of a hub, see inventory.HubHash.
func HubHash(server string) string { return inventory.HubHash(server) }

// Transform is for the cache of ManifestWorks and AppliedManifestWorks: it drops the managed fields, and keeps of those
// of a ManifestWork when its spec was written last (writtenAt).
func Transform(obj any) (any, error) {
	switch object := obj.(type) {
	case *workv1.ManifestWork:
		object.ManagedFields = lastWrite(object.ManagedFields)
	case metav1.Object:
		object.SetManagedFields(nil)
	}
	return obj, nil
}

// SetupWithManager registers the two controllers of the package: one for works and one for AppliedManifestWorks that
// have no work any more. The manager, or the program that starts it, must also start Hub and Spoke.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.absence == nil {
		if err := r.SetupOffline(mgr); err != nil {
			return err
		}
	}
	if err := r.complete(); err != nil {
		return err
	}
	if err := r.addReporters(mgr); err != nil {
		return err
	}
	if r.Cache != nil {
		if err := r.setupCopier(mgr); err != nil {
			return err
		}
	}
	if r.absence != nil {
		close(r.absence.admitted)
	} else if err := r.setupWorks(mgr, r.worksSource()); err != nil {
		return err
	}
	e := &evictor{Reconciler: r}
	controller := ctrl.NewControllerManagedBy(mgr).Named("agent.work.eviction").
		WithOptions(reconcile.Options(evictionWorkers)).
		WatchesRawSource(source.Func(e.start)).
		WatchesRawSource(e.worksSource()).
		WatchesRawSource(e.appliedSource())
	for _, also := range e.missingSources() {
		controller.WatchesRawSource(also)
	}
	if err := controller.Complete(e); err != nil {
		return fmt.Errorf("setting up agent.work.eviction: %w", err)
	}
	return nil
}

// setupWorks registers the controller of works, whose works come from a source.
func (r *Reconciler) setupWorks(mgr ctrl.Manager, works source.Source) error {
	if r.Metrics != nil && r.Cache != nil {
		if err := mgr.Add(r.copyMetrics()); err != nil {
			return fmt.Errorf("adding the metrics of the copies of works: %w", err)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.work").
		WithOptions(reconcile.OptionsInTurns(r.Workers, &r.turns)).
		WatchesRawSource(source.Func(r.start)).
		WatchesRawSource(works).
		WatchesRawSource(r.appliedSource()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up agent.work: %w", err)
	}
	return nil
}

// complete fills in defaults and builds the parts, once.
func (r *Reconciler) complete() error {
	if r.store != nil {
		return nil
	}
	r.AgentID = cmp.Or(r.AgentID, r.HubHash)
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.EvictionGrace = cmp.Or(r.EvictionGrace, DefaultEvictionGrace)
	if r.holds() {
		r.EvictionGrace = max(r.EvictionGrace, missing.Settle)
	}
	r.Workers, r.HubPatience = cmp.Or(r.Workers, DefaultWorkers), cmp.Or(r.HubPatience, DefaultHubPatience)
	r.MaxWatches, r.Relist = cmp.Or(r.MaxWatches, watch.DefaultMaxWatches), cmp.Or(r.Relist, watch.DefaultRelist)
	r.DeletionTimeout = cmp.Or(r.DeletionTimeout, prune.DefaultTimeout)
	r.MaxJSONRawLength = cmp.Or(r.MaxJSONRawLength, feedback.DefaultMaxRawLength)
	config := rest.CopyConfig(cmp.Or(r.Objects, r.Spoke.GetConfig()))
	config.UserAgent = names.FieldManagerWork
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("building the client of the spoke: %w", err)
	}
	objects, err := spoke.NewClient(config, transport)
	if err != nil {
		return err
	}
	records, err := spoke.NewClient(r.Spoke.GetConfig(), r.Spoke.GetHTTPClient())
	if err != nil {
		return err
	}
	metas, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), transport)
	if err != nil {
		return fmt.Errorf("building the metadata client of the spoke: %w", err)
	}
	if r.counts, err = newCounters(r.Metrics); err != nil {
		return err
	}
	if err := r.buildAuthorizer(config, transport, metas); err != nil {
		return err
	}
	kinds := r.Spoke.GetRESTMapper()
	r.mapper = &kindMapper{RESTMapper: kinds, known: kinds, fresh: func() (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(r.Spoke.GetConfig(), r.Spoke.GetHTTPClient())
	}}
	r.inventory = &inventory.Writer{
		Client: r.Spoke.GetClient(), Live: r.Spoke.GetAPIReader(), Objects: records, HubHash: r.HubHash, AgentID: r.AgentID,
	}
	store, watcher := watch.NewWatcher(metas, watch.Bounds{Watches: r.MaxWatches, Relist: r.Relist}, r.wake)
	r.applier = apply.Applier{Client: objects, Feedback: feedback.New(r.RawFeedback, r.MaxJSONRawLength)}
	r.room = spoke.NewRoom()
	r.pruner = prune.Pruner{
		Client: objects, Store: store, Mapper: r.mapper, Count: r.counts.deletion, Timeout: r.DeletionTimeout,
	}
	r.notes = newNotes()
	r.store, r.watcher = store, watcher
	return nil
}

// buildAuthorizer builds the authorizer of executors. It watches RBAC as the works may, and asks and tries as the
// reconciler itself.
func (r *Reconciler) buildAuthorizer(config *rest.Config, transport *http.Client, metas metadata.Interface) error {
	own := r.Spoke.GetConfig()
	reviews, err := authorizationclient.NewForConfigAndClient(own, r.Spoke.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client for access reviews: %w", err)
	}
	rbac, err := rbacclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return fmt.Errorf("building the client of RBAC: %w", err)
	}
	r.authorizer = executor.New(executor.Options{
		Reviews: reviews.SubjectAccessReviews(), Bindings: rbac, Roles: metas, Clock: r.Clock,
		Wake: func(work string) { r.wake(watch.Owner{Name: work}) },
		Impersonate: func(user string) (spoke.Client, error) {
			as := rest.CopyConfig(own)
			as.UserAgent = names.FieldManagerWork
			as.Impersonate = rest.ImpersonationConfig{UserName: user}
			transport, err := rest.HTTPClientFor(as)
			if err != nil {
				return spoke.Client{}, fmt.Errorf("building a client that acts as %s: %w", user, err)
			}
			client, err := spoke.NewClient(as, transport)
			return client.DryRun(), err
		},
	})
	return nil
}

// start receives the queue of the works and starts to watch the objects of the spoke.
func (r *Reconciler) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	r.queues.works = queue
	go r.watcher.Run(ctx)
	go r.authorizer.Run(ctx)
	return nil
}

// kindMapper maps kinds to resources and caches the answers until Reset, when a kind turned out to be gone: the mapper
// that it begins with never forgets.
type kindMapper struct {
	meta.RESTMapper
	fresh func() (meta.RESTMapper, error)

	mu    sync.Mutex
	known meta.RESTMapper
}

var _ meta.ResettableRESTMapper = (*kindMapper)(nil)

// RESTMapping maps a kind to the resource that serves it.
func (k *kindMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	known, err := k.current()
	if err != nil {
		return nil, err
	}
	return known.RESTMapping(kind, versions...)
}

// ResourcesFor returns the versions in which a resource is served.
func (k *kindMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	known, err := k.current()
	if err != nil {
		return nil, err
	}
	return known.ResourcesFor(resource)
}

// current is the mapper to ask.
func (k *kindMapper) current() (meta.RESTMapper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		known, err := k.fresh()
		if err != nil {
			return nil, fmt.Errorf("preparing to look up kinds: %w", err)
		}
		k.known = known
	}
	return k.known, nil
}

// Reset drops all cached answers.
func (k *kindMapper) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
}
