package work

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// parallel is how many objects of one work are applied at the same time.
	parallel = 8
	// firstUnserved and lastUnserved bound how long a work waits for a missing kind when no definition shows up. Only the
	// kinds of aggregated APIs come without one.
	firstUnserved, lastUnserved = 50 * time.Millisecond, 5 * time.Minute
)

// apply brings the objects of a work to the desired state and publishes the result on both sides.
func (r *Reconciler) apply(ctx context.Context, f *facts) reconcile.Outcome {
	if kept, outcome := r.ensureFinalizer(ctx, f); !kept {
		return outcome
	}
	r.claim(f)
	in := r.input(f)
	r.authorize(ctx, f, in)
	p := planAll(in)
	if err := r.record(ctx, f, p.record); err != nil {
		return r.publishNotRecorded(ctx, f, err)
	}
	if err := errors.Join(r.goBack(ctx, f), r.recordGeneration(ctx, f)); err != nil {
		return reconcile.FromError(err)
	}
	f.timing = r.Latency.Begin(f.reported())
	results := r.act(ctx, f, &p)
	if ctx.Err() == nil {
		f.timing.End()
	}
	outcome := outcomeOf(results)
	r.forgetUnserved(f, results)
	unwanted := inventory.Unwanted(f.manifests, inventory.Tracked(f.applied))
	left := r.prune(ctx, f, results, unwanted)
	outcome = outcome.And(reconcile.FromError(left.Err)).And(reconcile.DoneUntil(left.Wake))
	r.report(f, results, &left)
	list := inventory.List(f.manifests, found(results), f.applied.Status.AppliedResources, left.Pending)
	outcome = outcome.And(reconcile.FromError(r.publishList(ctx, f, list)))
	outcome = outcome.And(reconcile.FromError(r.narrowIntent(ctx, f, f.manifests, left.Pending)))
	if len(unwanted) > len(left.Pending) {
		r.claim(f) // objects that are gone need no watch any more
	}
	after := concludeStatus(f, results)
	r.time(f, after)
	before := f.work
	outcome = outcome.And(r.publishStatus(ctx, f, after))
	if f.work != before {
		// Until the hub has the status, the next pass finds the same manifests frozen as this one.
		outcome = outcome.And(thaw(before, p.steps, after, f.now))
	}
	return outcome.And(reconcile.DoneUntil(r.awaitKinds(f)))
}

// prune deletes the objects that no manifest means any more, unless they are held.
func (r *Reconciler) prune(ctx context.Context, f *facts, results []apply.Result,
	unwanted []workv1.AppliedManifestResourceMeta,
) prune.Remaining {
	ready, pending := inventory.Prunable(f.manifests, found(results), unwanted)
	held, err := r.keepsNewer(ctx, f)
	if held {
		ready, pending = nil, unwanted
	}
	left := r.pruner.Prune(ctx, r.pruneRequest(f, inventory.UIDs(found(results))), ready)
	left.Pending = append(left.Pending, pending...)
	left.Err = errors.Join(left.Err, err)
	return left
}

// claim registers the objects and kinds of the work with the store, before any request about them.
func (r *Reconciler) claim(f *facts) {
	objects := map[manifest.ID]watch.Key{}
	for _, entry := range inventory.Tracked(f.applied) {
		if !awaitsKind(f.manifests, entry) {
			objects[manifest.IDOf(entry)] = watch.Key{Resource: manifest.ResourceOf(entry), Namespace: entry.Namespace}
		}
	}
	var groups []string
	for i := range f.manifests {
		m := &f.manifests[i]
		switch {
		case m.Unserved():
			groups = append(groups, m.GVK.Group)
		case m.Mapped() && m.Err == nil:
			objects[m.ID()] = watch.Key{Resource: m.Resource, Namespace: m.Namespace}
		}
	}
	slices.Sort(groups)
	r.store.Claim(f.owner, objects, slices.Compact(groups))
}

// awaitsKind reports whether the kind of a tracked object is not served: then there is nothing to watch, and the watch
// that begins when the kind is served again begins at once.
func awaitsKind(manifests []manifest.Manifest, entry workv1.AppliedManifestResourceMeta) bool {
	return slices.ContainsFunc(manifests, func(m manifest.Manifest) bool {
		return m.Unserved() && m.GVK.Group == entry.Group && m.CouldBe(entry)
	})
}

// act carries out the steps of a plan rank by rank, several of a rank at a time, and records what was learned.
func (r *Reconciler) act(ctx context.Context, f *facts, p *plan) []apply.Result {
	results := make([]apply.Result, len(p.steps))
	for _, rank := range p.ranks {
		group := errgroup.Group{}
		group.SetLimit(parallel)
		for _, i := range rank {
			group.Go(func() error {
				results[i] = r.take(ctx, f, p, i)
				if f.timing != nil && ctx.Err() == nil { // what a pass that is cut short did not do is no outcome
					f.timing.Resource(i, resourceOf(&p.steps[i], &results[i]))
				}
				return nil
			})
		}
		_ = group.Wait()
	}
	return results
}

// resourceOf is what a step did, for the lines about latency.
func resourceOf(step *apply.Step, result *apply.Result) latency.Resource {
	version := step.Known.State.Object.Version
	if result.State != nil {
		version = result.State.Object.Version
	}
	return latency.Resource{Manifest: step.Manifest, Err: result.Err, Version: version}
}

// take carries out a planned step when there is room for what it decodes, and records what was learned.
func (r *Reconciler) take(ctx context.Context, f *facts, p *plan, i int) apply.Result {
	var result apply.Result
	step, decision := p.steps[i], p.in.objects[i].decision
	pass := apply.Pass{
		Owner: inventory.OwnerReference(f.applied.Name, f.applied.UID), Session: p.in.session, Now: f.now,
	}
	act := func(ctx context.Context) {
		step, p.in.objects[i].decision = p.steps[i], decision // nothing of a run that is over counts
		if defect := reconcile.Contain(ctx, step.Manifest.ID().String(), func() {
			step = r.checkEscalation(ctx, p.in, i, step)
			result = r.applier.Apply(ctx, pass, &step)
		}); defect != nil {
			result = apply.Panicked(pass, &step, defect)
		}
	}
	if q := step.Question; !step.Action.Asks() && (pass.Session == nil || q == nil || !q.GrantsPermissions()) {
		act(ctx)
		return result
	}
	bytes, err := f.room.Do(ctx, len(step.Raw), step.Known.State.Bytes, act)
	if err != nil {
		return apply.Result{Err: err, ReadErr: err}
	}
	if result.State != nil && bytes > 0 {
		result.State.Bytes = bytes
	}
	r.learn(f.owner, &step, &result)
	return result
}

// learn records the state of an object after a step.
func (r *Reconciler) learn(o watch.Owner, step *apply.Step, result *apply.Result) {
	if result.State != nil {
		r.counts.apply(result.Err)
		r.store.Record(o, step.Manifest.ID(), *result.State)
	}
}

// checkEscalation checks, right before it is applied, that a manifest grants no permissions which its executor lacks:
// an earlier rank may have created the role. The step is planned again with the decision.
func (r *Reconciler) checkEscalation(ctx context.Context, in *input, i int, step apply.Step) apply.Step {
	q := step.Question
	if in.session == nil || q == nil || step.Denial != nil || !q.GrantsPermissions() ||
		in.objects[i].decision.EscalationChecked {
		return step
	}
	decision := executor.Decision{Verdict: executor.Unknown}
	if desired, err := step.Manifest.Object(step.Raw); err != nil {
		decision.Err = err
	} else {
		decision = in.session.CheckEscalation(ctx, *q, desired)
	}
	in.objects[i].decision = &decision
	return planStep(in, i)
}

// forgetUnserved makes the next pass map those manifests again whose kind turned out to be gone in this one.
func (r *Reconciler) forgetUnserved(f *facts, results []apply.Result) {
	manifests, changed := withoutUnserved(f.manifests, results)
	if !changed {
		return
	}
	f.manifests = manifests
	meta.MaybeResetRESTMapper(r.mapper)
	r.notes.change(f.owner, func(n *note) { n.manifests = slices.Clone(manifests) })
	r.claim(f)
}

// awaitKinds is when to look again for kinds that are not served: soon at first, then more and more rarely. Their
// definitions are watched besides.
func (r *Reconciler) awaitKinds(f *facts) time.Time {
	missing := slices.ContainsFunc(f.manifests, func(m manifest.Manifest) bool { return m.Unserved() })
	seen := r.store.Definitions(f.owner)
	var wake time.Time
	r.notes.change(f.owner, func(n *note) {
		switch {
		case !missing:
			n.unservedSince = time.Time{}
			return
		case n.unservedSince.IsZero() || n.definitions != seen:
			n.unservedSince, n.definitions = f.now, seen
		}
		wake = f.now.Add(min(max(f.now.Sub(n.unservedSince), firstUnserved), lastUnserved))
	})
	return wake
}
