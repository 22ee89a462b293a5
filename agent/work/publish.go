package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// hubPause is how long a hub that did not take a status late, or that keeps all senders busy, gets none of the same
	// work.
	hubPause = 10 * time.Second
	// deletingPause is the least time between two statuses that differ only in what a deletion waits for.
	deletingPause = time.Second
)

// ensureFinalizer adds our finalizer to the work, without which nothing is applied. It returns true when the hub has
// it.
func (r *Reconciler) ensureFinalizer(ctx context.Context, f *facts) (bool, reconcile.Outcome) {
	// A hub that has a later write of ours has the finalizer, however long the event of that takes.
	if slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) || r.notes.of(f.owner).work.ahead(f.work, f.now) {
		return true, reconcile.Done()
	}
	wait, err := r.putFinalizers(ctx, f, append(slices.Clone(f.work.Finalizers), names.FinalizerManifestWork))
	if reconcile.ObjectGone(err) {
		return false, reconcile.Done()
	}
	if err != nil {
		err = fmt.Errorf("adding the finalizer: %w", err)
	}
	switch {
	case wait != nil:
		return false, reconcile.DoneUntil(*wait).And(reconcile.RetryBy(ctx, err, *wait))
	case err != nil:
		return false, reconcile.FromError(err)
	}
	f.complete()
	return true, reconcile.Done()
}

// finalizeWork removes our finalizer from the work, of which nothing is left. What it returns is that of putFinalizers.
func (r *Reconciler) finalizeWork(ctx context.Context, f *facts) (*time.Time, error) {
	if !slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) {
		return nil, nil
	}
	left := slices.DeleteFunc(slices.Clone(f.work.Finalizers), func(name string) bool {
		return name == names.FinalizerManifestWork
	})
	wait, err := r.putFinalizers(ctx, f, left)
	if err != nil && !reconcile.ObjectGone(err) {
		return wait, fmt.Errorf("releasing the ManifestWork: %w", err)
	}
	return wait, nil
}

// putFinalizers writes the finalizers of the work by a publisher of their own: a request that is given up when a
// busy hub has done half of it, and sent again, costs it as much each time and may never end, and no new work waits
// for what others have to tell. It returns until when to wait where it is not known how that went, zero when the end
// wakes the work, with the error of the try before. The hub answers with the metadata alone, which is all that a
// slow link can carry soon.
func (r *Reconciler) putFinalizers(ctx context.Context, f *facts, want []string) (*time.Time, error) {
	if wait, failed := r.notes.of(f.owner).sent[finalizers].awaits(f.work.UID, f.now); wait != nil {
		return wait, failed
	}
	owner, uid := f.owner, f.work.UID
	before := manifestWork(f.work.ObjectMeta)
	after := before.DeepCopy()
	after.Finalizers = want
	wait, err := r.deliver(ctx, f, finalizers, func(ctx context.Context) error {
		if _, err := reconcile.PatchMain(ctx, r.Hub.GetClient(), before, after); err != nil {
			return err
		}
		r.notes.change(owner, func(n *note) {
			if n.sent[finalizers].uid == uid { // and not of a work of the same name that came meanwhile
				n.work = written{uid: uid, version: after.ResourceVersion, at: r.Clock.Now(), gone: len(want) == 0}
				n.created = ""
			}
		})
		return nil
	})
	switch {
	case wait != nil || err != nil:
		return wait, err
	case after.Generation > f.work.Generation:
		return &time.Time{}, nil // The hub changed the spec as well, and the event of that wakes the work.
	}
	work := *f.reported()
	work.ObjectMeta = after.ObjectMeta
	f.work, f.atHub = &work, nil
	return nil, nil
}

// manifestWork returns the metadata of a work as an object, whose finalizers can be compared and patched.
func manifestWork(of metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Finalizers: of.Finalizers,
		},
	}
}

// lightWork is a work without its spec and status, to compare and patch the rest.
func lightWork(work *workv1.ManifestWork) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion,
		Finalizers: work.Finalizers,
	}}
}

// noteWork remembers the last write to the work of an owner.
func (r *Reconciler) noteWork(owner watch.Owner, work *workv1.ManifestWork) {
	r.notes.change(owner, func(n *note) {
		n.work = written{uid: work.UID, version: work.ResourceVersion, at: r.Clock.Now()}
		n.created = ""
	})
}

// publishStatus sends the status of the work, if it differs, and records an event of it. The pass waits for the hub
// only as long as it usually takes: the spoke comes first. Its end then wakes the work, and so the newest status
// follows.
func (r *Reconciler) publishStatus(ctx context.Context, f *facts, status workv1.ManifestWorkStatus) reconcile.Outcome {
	before := f.reported()
	r.keepCompletions(f, before, &status)
	if equality.Semantic.DeepEqual(before.Status, status) {
		if f.atHub != nil { // What was learned does not count any more.
			if f.inCopy {
				r.Cache.StatusReported(f.owner.Name)
			}
			f.work, f.atHub = f.atHub, nil
		}
		r.notes.change(f.owner, func(n *note) { n.created = "" })
		return reconcile.Done()
	}
	known := r.notes.of(f.owner)
	if known.work.ahead(before, f.now) && !known.underway(statuses, before.UID) {
		// The event of the write ends that, but for one that comes while this pass looks.
		return reconcile.DoneUntil(reconcile.Earliest(known.work.aheadUntil(), f.now.Add(hubPause)))
	}
	if wait, _ := known.sent[statuses].awaits(before.UID, f.now); wait != nil {
		return reconcile.DoneUntil(*wait)
	}
	if onlyFeedback(&before.Status, &status) {
		limit, at, ok := known.feedback.Spend(f.now)
		if !ok {
			return reconcile.DoneUntil(at)
		}
		r.notes.change(f.owner, func(n *note) { n.feedback = limit })
	}
	after := lightWork(before)
	after.Status = status
	return r.publish(ctx, f, after)
}

// keepCompletions keeps what a pass found complete until the cache of the hub shows it: a manifest that is complete is
// not applied again, however long its status takes to the hub and back.
func (r *Reconciler) keepCompletions(f *facts, before *workv1.ManifestWork, after *workv1.ManifestWorkStatus) {
	_, more := status.WithCompletions(before, f.manifests, after, f.now)
	if !more && r.notes.of(f.owner).learned == nil {
		return
	}
	r.notes.change(f.owner, func(n *note) {
		if n.learned, n.learnedOf = nil, ""; more {
			n.learned, n.learnedOf = after.DeepCopy(), before.UID
		}
	})
}

// errBehind is the result for a status that was not sent, because the hub would refuse it.
var errBehind = errors.New("the hub has a later version of the work than the cache")

// seen returns errBehind when the hub is ahead of the cache, of which it asks the metadata: behind a slow link the
// event of a large status may take minutes, and so may the answer to it. The hub would refuse the next one, as large,
// for its version; the event wakes the work.
func (r *Reconciler) seen(ctx context.Context, owner watch.Owner, cached *workv1.ManifestWork) error {
	live, err := r.worksMeta(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
	if err != nil && !reconcile.ObjectGone(err) {
		return fmt.Errorf("asking for the version of ManifestWork %s: %w", cached.Name, err)
	}
	behind := err == nil && live.UID == cached.UID && watch.Older(cached.ResourceVersion, live.ResourceVersion)
	r.notes.change(owner, func(n *note) {
		n.unsure = false
		if behind {
			n.work = written{
				uid: live.UID, version: live.ResourceVersion, at: n.work.at, kept: r.Clock.Now(), unseen: true,
			}
		}
	})
	if behind {
		return errBehind
	}
	return nil
}

// worksMeta reads and writes the metadata of works.
func (r *Reconciler) worksMeta(namespace string) metadata.ResourceInterface {
	return r.hubMetas.Resource(schema.GroupVersion(workv1.GroupVersion).WithResource("manifestworks")).Namespace(namespace)
}

// publish sends a status by the publisher; a reconciler that was not set up sends it at once.
func (r *Reconciler) publish(ctx context.Context, f *facts, after *workv1.ManifestWork) reconcile.Outcome {
	before, owner := f.reported(), f.owner
	known := r.notes.of(owner)
	asks := r.hubMetas != nil && (known.unsure || known.work.unseenIn(before))
	send := func(ctx context.Context) error {
		if asks {
			if err := r.seen(ctx, owner, before); err != nil {
				return err
			}
		}
		err := r.send(ctx, before, after)
		if err == nil {
			r.published(owner, before, after)
		}
		r.notes.change(owner, func(n *note) { n.unsure = isUnsure(err) })
		return err
	}
	wait, err := r.deliver(ctx, f, statuses, send)
	if wait != nil {
		return reconcile.DoneUntil(*wait)
	}
	return r.sent(f, after, err)
}

// deliver makes a request about a work by a publisher; a reconciler that was not set up makes it at once. It returns
// until when to wait where it is not known how that went, zero when the end of the request wakes the work.
func (r *Reconciler) deliver(
	ctx context.Context, f *facts, of lane, send func(context.Context) error,
) (*time.Time, error) {
	owner, uid, publisher := f.owner, f.work.UID, r.publishers[of]
	set := func(d delivery) { r.notes.change(owner, func(n *note) { n.sent[of] = d }) }
	set(delivery{uid: uid, underway: publisher != nil})
	if publisher == nil {
		return nil, send(ctx)
	}
	taken, ended, err := publisher.publish(ctx, send, func(err error) { r.endLate(owner, of, uid, err) })
	switch {
	case !taken:
		until := f.now.Add(hubPause)
		set(delivery{uid: uid, silentUntil: until})
		return &until, nil
	case !ended:
		return &time.Time{}, nil
	}
	set(delivery{uid: uid})
	return nil, err
}

// send writes a status to the hub. A large one is a patch of what changed, of which the hub answers with the metadata
// alone: all that costs a slow link more than the hub (docs/adr/0008).
func (r *Reconciler) send(ctx context.Context, before, after *workv1.ManifestWork) error {
	patch, err := status.Patch(before, &after.Status)
	switch {
	case err != nil:
		return fmt.Errorf("encoding the status of ManifestWork %s: %w", after.Name, err)
	case patch == nil || r.hubMetas == nil:
		return reconcile.PutStatus(ctx, r.Hub.GetClient(), after)
	}
	answer, err := r.worksMeta(after.Namespace).Patch(ctx, after.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("patching the status of ManifestWork %s: %w", after.Name, err)
	}
	after.ObjectMeta = answer.ObjectMeta
	return nil
}

// sent is the outcome of a pass that knows how sending its status ended.
func (r *Reconciler) sent(f *facts, after *workv1.ManifestWork, err error) reconcile.Outcome {
	switch {
	case reconcile.ObjectGone(err):
		return reconcile.Done()
	case errors.Is(err, errBehind):
		return reconcile.DoneUntil(f.now.Add(hubPause))
	case err != nil:
		return reconcile.FromError(err)
	}
	f.work, f.atHub = after, nil
	return reconcile.Done()
}

// isUnsure reports whether the hub may have a status although sending it failed: there was no answer, or one
// that leaves it open, as from a proxy.
func isUnsure(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && (!errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError)
}

// endLate notes how a request ended for which no pass waits, and wakes the work: after a status that failed, when it is
// sent again, and else at once. That of a former work of the name says nothing about this one.
func (r *Reconciler) endLate(owner watch.Owner, of lane, uid types.UID, err error) {
	d, pause := delivery{uid: uid}, time.Duration(0)
	switch {
	case err == nil, errors.Is(err, errBehind):
	case of == statuses:
		pause = hubPause
	case !reconcile.IsLostRace(err) && !reconcile.ObjectGone(err):
		d.failed = err // which the work tells at once
	}
	if d.failed != nil || pause > 0 {
		d.silentUntil = r.Clock.Now().Add(hubPause)
	}
	r.notes.change(owner, func(n *note) {
		if n.underway(of, uid) {
			n.sent[of] = d
		}
	})
	r.queues.works.AddAfter(r.request(owner.Name), pause)
}

// published notes that the hub has a status, and records an event of it.
func (r *Reconciler) published(owner watch.Owner, before, after *workv1.ManifestWork) {
	r.noteWork(owner, after)
	if r.Cache != nil {
		r.Cache.StatusReported(owner.Name)
	}
	if e, changed := appliedEvent(&before.Status, &after.Status); changed {
		r.events.record(before.ObjectMeta, e)
	}
}

// onlyFeedback reports whether two statuses differ in values of feedback alone. Such a change may come several times a
// second for ever.
func onlyFeedback(before, after *workv1.ManifestWorkStatus) bool {
	was, is := before.ResourceStatus.Manifests, after.ResourceStatus.Manifests
	if len(was) != len(is) || !sameButTimes(before.Conditions, after.Conditions) {
		return false
	}
	for i := range was {
		if was[i].ResourceMeta != is[i].ResourceMeta || !sameButTimes(was[i].Conditions, is[i].Conditions) {
			return false
		}
	}
	return true
}

// sameButTimes reports whether conditions differ in their times at most: that of StatusFeedbackSynced moves with each
// value.
func sameButTimes(before, after []metav1.Condition) bool {
	return slices.EqualFunc(before, after, func(a, b metav1.Condition) bool {
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		return a == b
	})
}
