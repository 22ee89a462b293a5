package work

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Copies returns the number of works of which Cache has a copy.
func (r *Reconciler) Copies() int { return len(r.Cache.Works()) }

// SetupOffline registers the controller of works before the hub may be asked, or where there is no hub at all and Hub
// is nil: until the hub has listed its works, it cares for those of which Cache has a copy. With no copy it does
// nothing. SetupWithManager may follow, once the hub may be asked.
func (r *Reconciler) SetupOffline(mgr ctrl.Manager) error {
	if len(r.Cache.Works()) == 0 {
		return nil
	}
	if err := r.complete(); err != nil {
		return err
	}
	r.absence = &absence{admitted: make(chan struct{})}
	return r.setupWorks(mgr, source.Func(r.startOffline))
}

// startOffline begins with the copies, and follows the hub as soon as it has listed its works. Unlike other sources it
// does not hold up the controller until then. A hub that answers has the word about works that changed meanwhile, so
// the copies wait for it a while.
func (r *Reconciler) startOffline(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	works := r.Cache.Works()
	patience := time.Duration(0)
	if r.Hub != nil {
		patience = r.HubPatience
		go r.awaitHub(ctx, queue)
	}
	log.FromContext(ctx).Info("looking after the works as they were last seen, until the hub lists them",
		"works", len(works), "after", patience.String())
	begin := func() {
		r.absence.trusted.Store(true)
		for _, name := range works {
			queue.Add(r.request(name))
		}
	}
	if patience == 0 {
		begin()
		return nil
	}
	timer := time.AfterFunc(patience, begin)
	context.AfterFunc(ctx, func() { timer.Stop() })
	return nil
}

// awaitHub makes the works of the hub the truth as soon as it has listed them. Events of before
// were handled for the copies, so all works are reconciled again, and all copies, whose works may be gone.
func (r *Reconciler) awaitHub(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	select {
	case <-ctx.Done():
		return
	case <-r.absence.admitted:
	}
	logger := log.FromContext(ctx)
	hub := r.worksSource()
	if err := hub.Start(ctx, queue); err != nil {
		logger.Error(err, "cannot follow the works of the hub")
		return
	}
	if err := hub.WaitForSync(ctx); err != nil || ctx.Err() != nil {
		if ctx.Err() == nil {
			logger.Error(err, "cannot follow the works of the hub")
		}
		return
	}
	r.absence.over.Store(true)
	var list workv1.ManifestWorkList
	err := r.Hub.GetCache().List(ctx, &list, client.InNamespace(r.Cluster), client.UnsafeDisableDeepCopy,
		decode.Metadata)
	if err != nil {
		logger.Error(err, "cannot list the works of the hub")
	}
	for i := range list.Items {
		queue.Add(r.request(list.Items[i].Name))
	}
	for _, name := range r.Cache.Works() {
		queue.Add(r.request(name))
	}
	logger.Info("the hub has listed its works, which hold from now on", "works", len(list.Items))
}

// applyOffline keeps the objects of a work as its copy says. What it learns about complete manifests goes into the
// copy.
func (r *Reconciler) applyOffline(ctx context.Context, f *facts) reconcile.Outcome {
	after, outcome := r.keep(ctx, f)
	if after == nil {
		return outcome
	}
	if err := r.Cache.SaveStatus(f.copied, after); err != nil {
		log.FromContext(ctx).V(1).Info("what was learned without the hub is not on disk", "reason", err.Error())
	}
	return outcome
}

// keep keeps the objects of a work. It creates no object that did not exist when the hub was last heard, deletes none
// and writes nothing to the hub. It returns the status that follows, nil when nothing was done.
func (r *Reconciler) keep(ctx context.Context, f *facts) (*workv1.ManifestWorkStatus, reconcile.Outcome) {
	withholdUnknown(f.manifests, inventory.Tracked(f.applied))
	r.claim(f)
	in := r.input(f)
	r.authorize(ctx, f, in)
	p := planAll(in)
	if err := r.record(ctx, f, p.record); err != nil {
		return nil, reconcile.FromError(err)
	}
	results := r.act(ctx, f, &p)
	outcome := outcomeOf(results)
	r.countRepairs(results)
	f.manifests, _ = withoutUnserved(f.manifests, results)
	list := listOffline(f.manifests, results, f.applied.Status.AppliedResources)
	outcome = outcome.And(reconcile.FromError(r.publishList(ctx, f, list)))
	after := concludeStatus(f, results)
	outcome = outcome.And(thaw(f.work, p.steps, after, f.now))
	return &after, outcome.And(reconcile.DoneUntil(r.awaitKinds(f)))
}

// listOffline is the list of applied resources after a pass without the hub. It never shrinks: an object that is gone
// and could not be made, for example because its namespace is going, is made by a later pass.
func listOffline(manifests []manifest.Manifest, results []apply.Result, before []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	return inventory.List(manifests, found(results), before, before)
}

// withholdUnknown keeps manifests from being applied whose object the AppliedManifestWork does not name: the copy may
// be older than the work was at last, and then the object was deleted for good.
func withholdUnknown(manifests []manifest.Manifest, tracked []workv1.AppliedManifestResourceMeta) {
	ids := inventory.IDs(tracked)
	for i := range manifests {
		m := &manifests[i]
		if _, known := ids[m.ID()]; m.Err == nil && m.Mapped() && !known {
			m.Err = errWithheld
		}
	}
}

// errWithheld is why a manifest is not applied while the hub is away.
var errWithheld = errors.New(
	"its object was not there when the hub was last heard; it is made when the hub is back")
