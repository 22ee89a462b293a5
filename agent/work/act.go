package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// firstUnserved and lastUnserved bound how long a work waits for a missing kind when no definition shows up.
	firstUnserved, lastUnserved = 50 * time.Millisecond, 30 * time.Second
	// recheckSpread spreads the looks at objects that cannot be watched.
	recheckSpread = 0.5
)

// apply makes the objects as the work says and tells both sides about it.
func (r *Reconciler) apply(ctx context.Context, f *facts) reconcile.Outcome {
	if err := r.ensureFinalizer(ctx, f); err != nil {
		return reconcile.FromError(client.IgnoreNotFound(err))
	}
	r.claim(f)
	tasks := r.tasks(f)
	asked := r.authorizer.authorize(ctx, f, tasks)
	if err := r.ensureApplied(ctx, f, tasks); err != nil {
		return r.publishUnlisted(ctx, f, err)
	}
	results, outcome := r.applyAll(ctx, f, tasks, asked)
	r.forgetUnserved(f, tasks)
	unwanted := stale(f.manifests, tracked(f.applied))
	ready, unsure := prunable(f.manifests, results, unwanted)
	left := r.drainer.drain(ctx, f.holder, f.applied.UID, f.now, ready,
		exempt{orphaned: f.spares, applied: appliedUIDs(results)})
	left.pending = append(left.pending, unsure...)
	outcome = outcome.And(reconcile.FromError(left.err)).And(reconcile.DoneUntil(left.wake))
	r.announce(f, tasks, &left)
	list := track(f.manifests, results, f.applied.Status.AppliedResources, left.pending)
	outcome = outcome.And(reconcile.FromError(r.publishApplied(ctx, f, list)))
	outcome = outcome.And(reconcile.FromError(r.narrowIntent(ctx, f, left.pending)))
	if len(unwanted) > len(left.pending) {
		r.claim(f) // what went needs no watch any more
	}
	status := conclude(f.work, f.manifests, results, f.now)
	before := f.work
	outcome = outcome.And(r.publishStatus(ctx, f, status))
	if f.work != before {
		// Until the hub has the status, the next pass finds the same manifests frozen as this one.
		outcome = outcome.And(thawing(before, tasks, status, f.now))
	}
	return outcome.And(reconcile.DoneUntil(r.awaitKinds(f)))
}

// ensureFinalizer puts our finalizer on the work, without which nothing is applied.
func (r *Reconciler) ensureFinalizer(ctx context.Context, f *facts) error {
	if slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	before, after := lightWork(f.work), lightWork(f.work)
	after.Finalizers = append(slices.Clone(after.Finalizers), names.FinalizerManifestWork)
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	if _, err := reconcile.PatchMain(within, r.Hub.GetClient(), before, after); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	r.wroteWork(f, after)
	f.work = after
	return nil
}

// lightWork is a work without its spec and status, to compare and patch the rest.
func lightWork(work *workv1.ManifestWork) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion,
		Finalizers: work.Finalizers,
	}}
}

// wroteWork remembers the last write to the work.
func (r *Reconciler) wroteWork(f *facts, work *workv1.ManifestWork) {
	r.memory.change(f.holder, func(k *recall) {
		k.work = written{uid: work.UID, version: work.ResourceVersion, at: r.Clock.Now()}
		k.fresh = ""
	})
}

// wroteApplied remembers the last write to the AppliedManifestWork and makes it the one of the pass.
func (r *Reconciler) wroteApplied(f *facts, applied *workv1.AppliedManifestWork) {
	r.memory.change(f.holder, func(k *recall) {
		k.applied = written{
			uid: applied.UID, version: applied.ResourceVersion, at: r.Clock.Now(),
			deleting: !applied.DeletionTimestamp.IsZero(),
		}
	})
	f.applied = applied
}

// claim tells the ledger what the work cares for, before any request about it.
func (r *Reconciler) claim(f *facts) {
	objects := map[identity]watchKey{}
	for _, entry := range tracked(f.applied) {
		if !awaits(f.manifests, entry) {
			objects[entryIdentity(entry)] = watchKey{resource: entryResource(entry), namespace: entry.Namespace}
		}
	}
	var groups []string
	for i := range f.manifests {
		m := &f.manifests[i]
		switch {
		case m.unserved():
			groups = append(groups, m.gvk.Group)
		case m.mapped() && m.err == nil:
			objects[m.id()] = watchKey{resource: m.resource, namespace: m.namespace}
		}
	}
	slices.Sort(groups)
	r.ledger.claim(f.holder, objects, slices.Compact(groups))
}

// tasks says for each manifest what is known of its object.
func (r *Reconciler) tasks(f *facts) []task {
	listed := identities(tracked(f.applied))
	before := formerConditions(f.work.Status.ResourceStatus.Manifests)
	tasks := make([]task, len(f.manifests))
	for i := range tasks {
		m := &f.manifests[i]
		tasks[i] = task{
			manifest: m, raw: f.work.Spec.Workload.Manifests[i].Raw, now: f.now, offline: f.offline,
		}
		if m.err != nil {
			continue
		}
		t := &tasks[i]
		t.prior, t.heard = r.ledger.look(f.holder, m.id())
		t.expected = listed[m.id()] != ""
		status := before.of(m.meta())
		t.current = appliedAt(status, f.work.Generation)
		t.frozen = frozen(f.work, m, status)
		if f.applied != nil {
			t.owner = ownerReference(f.applied.Name, f.applied.UID)
		}
		if t.recheck = r.recheck(f, t); !t.recheck.IsZero() && !f.now.Before(t.recheck) {
			t.heard, t.recheck = max(t.heard, newsChanged), time.Time{}
		}
		t.freeze()
	}
	return tasks
}

// recheck is when an object that no watch speaks of, or whose manifest was refused, is looked at again; zero for all
// others.
func (r *Reconciler) recheck(f *facts, t *task) time.Time {
	if again := t.retryAt(); !again.IsZero() {
		return again
	}
	if t.prior.checked.IsZero() || !r.ledger.unwatched(f.holder, t.id()) {
		return time.Time{}
	}
	return t.prior.checked.Add(reconcile.Spread(recheckPause, recheckSpread, t.id().String()))
}

// appliedAt reports whether the status says that the manifest was applied in the generation.
func appliedAt(status *workv1.ManifestCondition, generation int64) bool {
	if status == nil {
		return false
	}
	applied := meta.FindStatusCondition(status.Conditions, workv1.ManifestApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == generation
}

// applyAll applies the manifests rank by rank, several of a rank at a time, and returns what became of each.
func (r *Reconciler) applyAll(ctx context.Context, f *facts, tasks []task, asked *executor.Session,
) ([]result, reconcile.Outcome) {
	results := make([]result, len(tasks))
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(tasks[a].gvk.Kind) - rank(tasks[b].gvk.Kind) })
	for len(order) > 0 {
		first := rank(tasks[order[0]].gvk.Kind)
		end := slices.IndexFunc(order, func(i int) bool { return rank(tasks[i].gvk.Kind) != first })
		if end < 0 {
			end = len(order)
		}
		group := errgroup.Group{}
		group.SetLimit(width)
		for _, i := range order[:end] {
			group.Go(func() error {
				t := &tasks[i]
				if fault := contain(ctx, t.id().String(), func() {
					r.authorizer.checkEscalation(ctx, asked, t)
					results[i] = r.applyOne(ctx, f.holder, t)
				}); fault != nil {
					results[i] = r.broken(f.holder, t, fault)
				}
				return nil
			})
		}
		_ = group.Wait()
		order = order[end:]
	}
	var outcome reconcile.Outcome
	for i := range results {
		if !results[i].lasting {
			outcome = outcome.And(reconcile.FromError(results[i].err))
		}
		outcome = outcome.And(reconcile.DoneUntil(reconcile.Earliest(results[i].wake, tasks[i].recheck)))
	}
	return results, outcome
}

// applyOne applies one manifest and notes what was learned.
func (r *Reconciler) applyOne(ctx context.Context, h holder, t *task) result {
	if t.err != nil {
		return result{
			err: t.err, presence: presenceUnknown, readErr: t.err,
			lasting: !t.retriable() || t.unserved(),
		}
	}
	if t.denied != nil && t.denied.unread != nil {
		return t.refused()
	}
	res, rec, learned := r.applier.apply(ctx, t)
	if kindGone(res.err) {
		t.unserve()
		t.vanished = true
		return result{err: t.err, presence: presenceUnknown, readErr: t.err, lasting: true}
	}
	if learned {
		r.counts.apply(res.err)
		r.ledger.note(h, t.id(), rec)
	}
	if t.denied != nil {
		res.err, res.lasting = t.denied.err, t.denied.lasting && (res.lasting || res.readErr == nil)
	}
	return res
}

// awaitKinds is when to look again for kinds that are not served: soon at first, then ever more rarely. The definition
// of such a kind is watched for besides.
func (r *Reconciler) awaitKinds(f *facts) time.Time {
	missing := slices.ContainsFunc(f.manifests, func(m manifest) bool { return m.unserved() })
	seen := r.ledger.definitions(f.holder)
	var wake time.Time
	r.memory.change(f.holder, func(k *recall) {
		switch {
		case !missing:
			k.unserved = time.Time{}
			return
		case k.unserved.IsZero() || k.definitions != seen:
			k.unserved, k.definitions = f.now, seen
		}
		wake = f.now.Add(min(max(f.now.Sub(k.unserved), firstUnserved), lastUnserved))
	})
	return wake
}

// publishApplied writes the list of applied resources, if it differs.
func (r *Reconciler) publishApplied(ctx context.Context, f *facts, list []workv1.AppliedManifestResourceMeta) error {
	if equality.Semantic.DeepEqual(f.applied.Status.AppliedResources, list) {
		return nil
	}
	after := f.applied.DeepCopy()
	after.Status.AppliedResources = list
	if err := reconcile.PutStatus(ctx, r.Spoke.GetClient(), after); err != nil {
		return fmt.Errorf("recording the applied resources: %w", err)
	}
	r.wroteApplied(f, after)
	return nil
}

// narrowIntent takes from the intent what is neither wanted any more nor pending.
func (r *Reconciler) narrowIntent(ctx context.Context, f *facts, pending []workv1.AppliedManifestResourceMeta) error {
	intent, narrower := narrow(f.manifests, f.applied, pending)
	if !narrower {
		return nil
	}
	after := f.applied.DeepCopy()
	setIntent(after, intent)
	if _, err := reconcile.PatchMain(ctx, r.Spoke.GetClient(), f.applied, after); err != nil {
		return fmt.Errorf("narrowing the intent of the AppliedManifestWork: %w", err)
	}
	r.wroteApplied(f, after)
	return nil
}

// publishStatus writes the status of the work, if it differs, and tells of it. A hub that does not answer holds up the
// pass only so long, and the passes after that not at all for a while: the spoke comes first.
func (r *Reconciler) publishStatus(ctx context.Context, f *facts, status workv1.ManifestWorkStatus) reconcile.Outcome {
	if equality.Semantic.DeepEqual(f.work.Status, status) {
		r.memory.change(f.holder, func(k *recall) { k.fresh = "" })
		return reconcile.Done()
	}
	if silent := r.memory.of(f.holder).silent; f.now.Before(silent) {
		return reconcile.DoneUntil(silent)
	}
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	after := lightWork(f.work)
	after.Status = status
	err := reconcile.PutStatus(within, r.Hub.GetClient(), after)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		silent := r.Clock.Now().Add(hubPause)
		r.memory.change(f.holder, func(k *recall) { k.silent = silent })
		return reconcile.RetryBy(ctx, fmt.Errorf("the hub did not answer: %w", err), silent)
	case err != nil:
		return reconcile.FromError(client.IgnoreNotFound(err))
	}
	r.wroteWork(f, after)
	if m, news := appliedTidings(&f.work.Status, &status); news {
		r.herald.tell(f.work.ObjectMeta, m)
	}
	f.work = after
	return reconcile.Done()
}

// announce tells what a pass put right on the spoke, and what does not go.
func (r *Reconciler) announce(f *facts, tasks []task, left *drained) {
	for i := range tasks {
		if tasks[i].repaired != "" {
			r.counts.repair(tasks[i].repaired)
		}
	}
	if m, news := repairTidings(tasks); news {
		r.herald.tell(f.work.ObjectMeta, m)
	}
	r.report(f, f.work.ObjectMeta, left)
}
