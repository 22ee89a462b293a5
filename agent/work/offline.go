package work

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// absence is the time from the start of the reconciler until the hub has listed its works.
type absence struct {
	// admitted is closed when the hub may be asked for works.
	admitted chan struct{}
	// over tells that the hub has listed its works, which are the truth from then on.
	over atomic.Bool
}

// offline reports whether the works are those of the copies.
func (r *Reconciler) offline() bool { return r.absence != nil && !r.absence.over.Load() }

// Copies returns the number of works of which Cache has a copy.
func (r *Reconciler) Copies() int { return len(r.Cache.Works()) }

// SetupOffline registers the controller of works before the hub may be asked, or where there is no hub at all and Hub
// is nil: until the hub has listed its works, it looks after those of which Cache has a copy. With no copy it does
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
// does not hold up the controller until then.
func (r *Reconciler) startOffline(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	works := r.Cache.Works()
	log.FromContext(ctx).Info("looking after the works as they were last seen, until the hub lists them", "works",
		len(works))
	for _, name := range works {
		queue.Add(r.request(name))
	}
	if r.Hub != nil {
		go r.awaitHub(ctx, queue)
	}
	return nil
}

// awaitHub makes the works of the hub the truth as soon as it has listed them. What was heard of them before was
// looked at as a copy, so all of them are looked at again, and all copies, whose works may be gone.
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
	err := r.Hub.GetCache().List(ctx, &list, client.InNamespace(r.Cluster), client.UnsafeDisableDeepCopy)
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

// observeOffline collects the facts about a work of which there is a copy. Without one that can be used there is no
// work in the facts, which says nothing about whether it exists.
func (r *Reconciler) observeOffline(ctx context.Context, f *facts) (*facts, error) {
	f.offline = true
	known, err := r.Cache.Load(ctx, f.holder.name)
	if err != nil || known == nil {
		return f, err
	}
	f.applied, err = readApplied(ctx, r.Spoke.GetClient(), appliedName(r.HubHash, f.holder.name))
	if err != nil {
		return f, err
	}
	f.work, f.copied = known.Work, known
	r.checkLag(f)
	if why := unusable(f.applied, known, r.appliedSpec(f)); why != "" {
		f.work = nil
		log.FromContext(ctx).V(1).Info("the copy of the work is not used", "reason", why)
		return f, nil
	}
	f.manifests = r.readManifests(f)
	return f, nil
}

// unusable says why a copy must not be used as the spoke is now; empty when it may be. The AppliedManifestWork has to
// be the one for which the copy was made, and whole.
func unusable(applied *workv1.AppliedManifestWork, known *offline.Copy, spec workv1.AppliedManifestWorkSpec) string {
	switch {
	case applied == nil:
		return "there is no AppliedManifestWork"
	case applied.UID != known.Applied:
		return "the AppliedManifestWork is another one"
	case !applied.DeletionTimestamp.IsZero():
		return "the AppliedManifestWork is being deleted"
	case applied.Spec != spec:
		return "the AppliedManifestWork belongs to another hub or agent"
	}
	return outdated(applied, known.Work)
}

// applyOffline keeps the objects of a work as its copy says. It makes none that was not there when the hub was last
// heard, deletes none, and tells the hub nothing; what it learns about complete manifests goes into the copy.
func (r *Reconciler) applyOffline(ctx context.Context, f *facts) reconcile.Outcome {
	known := tracked(f.applied)
	withholdUnknown(f.manifests, known)
	r.claim(f)
	tasks := r.tasks(f)
	asked := r.authorizer.authorize(ctx, f, tasks)
	if err := r.repairApplied(ctx, f, tasks); err != nil {
		return reconcile.FromError(err)
	}
	results, outcome := r.applyAll(ctx, f, tasks, asked)
	for i := range tasks {
		if tasks[i].repaired != "" {
			r.counts.repair(tasks[i].repaired)
		}
	}
	list := track(f.manifests, results, f.applied.Status.AppliedResources, stale(f.manifests, known))
	outcome = outcome.And(reconcile.FromError(r.publishApplied(ctx, f, list)))
	status := conclude(f.work, f.manifests, results, f.now)
	outcome = outcome.And(thawing(f.work, tasks, status, f.now))
	r.learn(ctx, f, &status)
	return outcome.And(reconcile.DoneUntil(r.awaitKinds(f)))
}

// withholdUnknown keeps manifests from being applied whose object the AppliedManifestWork does not name: the copy may
// be older than what is in force, and then the object is gone for good.
func withholdUnknown(manifests []manifest, known []workv1.AppliedManifestResourceMeta) {
	ids := identities(known)
	for i := range manifests {
		m := &manifests[i]
		if _, there := ids[m.id()]; m.err == nil && m.mapped() && !there {
			m.err = errWithheld
		}
	}
}

// errWithheld says why a manifest is left alone while the hub is away.
var errWithheld = errors.New(
	"its object was not there when the hub was last heard; it is made when the hub is back")

// learn puts into the copy what the pass found out about complete manifests, so that a Job that is done and cleared
// away is not run again.
func (r *Reconciler) learn(ctx context.Context, f *facts, status *workv1.ManifestWorkStatus) {
	if err := r.Cache.SaveStatus(f.copied, status); err != nil {
		log.FromContext(ctx).V(1).Info("what was learned without the hub is not on disk", "reason", err.Error())
	}
}

// tellLearned tells the hub which manifests became complete while it was away, before anything is decided by its word
// alone.
func (r *Reconciler) tellLearned(ctx context.Context, f *facts) error {
	if r.Cache == nil {
		return nil
	}
	learned, err := r.Cache.UnreportedStatus(ctx, f.work.Name, f.work.UID)
	if err != nil || learned == nil {
		return err
	}
	if status, news := withCompletions(f, learned); news {
		before, after := lightWork(f.work), lightWork(f.work)
		before.Status, after.Status = f.work.Status, status
		within, cancel := context.WithTimeout(ctx, hubPatience)
		defer cancel()
		if _, err := reconcile.PatchStatus(within, r.Hub.GetClient(), before, after); err != nil {
			return fmt.Errorf("telling the hub what became complete without it: %w", err)
		}
		r.wroteWork(f, after)
		work := *f.work
		work.Status, work.ResourceVersion = after.Status, after.ResourceVersion
		f.work = &work
	}
	r.Cache.StatusReported(f.work.Name)
	return nil
}

// withCompletions returns the status of the work of the hub with what was found complete while the hub was away, and
// whether that is news.
func withCompletions(f *facts, learned *workv1.ManifestWorkStatus) (workv1.ManifestWorkStatus, bool) {
	status := *f.work.Status.DeepCopy()
	news := false
	former := formerConditions(learned.ResourceStatus.Manifests)
	for i := range status.ResourceStatus.Manifests {
		m := &status.ResourceStatus.Manifests[i]
		if was := former.of(m.ResourceMeta); completed(was) && !completed(m) {
			set(&m.Conditions, *meta.FindStatusCondition(was.Conditions, workv1.ManifestComplete), f.now)
			news = true
		}
	}
	complete := meta.FindStatusCondition(learned.Conditions, workv1.WorkComplete)
	if complete != nil && complete.Status == metav1.ConditionTrue && complete.ObservedGeneration == f.work.Generation &&
		!meta.IsStatusConditionTrue(status.Conditions, workv1.WorkComplete) {
		set(&status.Conditions, *complete, f.now)
		news = true
	}
	return status, news
}

// outdate removes the copy of a work that is going or gone, or that has a new generation, before the pass acts on that.
func (r *Reconciler) outdate(f *facts, phase phase) {
	switch {
	case r.Cache == nil || f.offline:
	case phase == phaseApply || phase == phaseDrain:
		r.Cache.Invalidate(f.work.Name, f.work.UID, f.work.Generation)
	case phase != phaseStale:
		r.Cache.Delete(f.holder.name)
	}
}

// keep makes the copier look at a work a moment after its pass.
func (r *Reconciler) keep(f *facts, phase phase) {
	if r.Cache != nil && phase == phaseApply {
		r.queues.copies.AddAfter(r.request(f.holder.name), copyDelay)
	}
}
