package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// hubTimeout is how long one request to the hub may take before the pass goes on without its answer.
	hubTimeout = 3 * time.Second
	// hubPause is how long a hub that did not answer gets no status of the same work.
	hubPause = 10 * time.Second
	// deletingPause is the least time between two statuses that differ only in what a deletion waits for.
	deletingPause = time.Second
)

// ensureFinalizer adds our finalizer to the work, without which nothing is applied.
func (r *Reconciler) ensureFinalizer(ctx context.Context, f *facts) error {
	if slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	before, after := lightWork(f.work), lightWork(f.work)
	after.Finalizers = append(slices.Clone(after.Finalizers), names.FinalizerManifestWork)
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	if _, err := reconcile.PatchMain(within, r.Hub.GetClient(), before, after); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	r.wroteWork(f, after)
	f.work = after
	return nil
}

// finalizeWork removes our finalizer from the work, of which nothing is left.
func (r *Reconciler) finalizeWork(ctx context.Context, f *facts) error {
	if !slices.Contains(f.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	before, after := lightWork(f.work), lightWork(f.work)
	after.Finalizers = slices.DeleteFunc(slices.Clone(after.Finalizers), func(name string) bool {
		return name == names.FinalizerManifestWork
	})
	if len(after.Finalizers) == 0 {
		after.Finalizers = nil
	}
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	_, err := reconcile.PatchMain(within, r.Hub.GetClient(), before, after)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("releasing the ManifestWork: %w", err)
	}
	if len(after.Finalizers) == 0 {
		r.notes.change(f.owner, func(n *note) { n.work = written{uid: f.work.UID, at: r.Clock.Now(), gone: true} })
	}
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
	r.notes.change(f.owner, func(n *note) {
		n.work = written{uid: work.UID, version: work.ResourceVersion, at: r.Clock.Now()}
		n.created = ""
	})
}

// publishStatus writes the status of the work, if it differs, and records an event of it. A hub that does not answer
// delays the pass for so long only, and the passes after that not at all for a while: the spoke comes first.
func (r *Reconciler) publishStatus(ctx context.Context, f *facts, status workv1.ManifestWorkStatus) reconcile.Outcome {
	if equality.Semantic.DeepEqual(f.work.Status, status) {
		r.notes.change(f.owner, func(n *note) { n.created = "" })
		return reconcile.Done()
	}
	if until := r.notes.of(f.owner).hubSilentUntil; f.now.Before(until) {
		return reconcile.DoneUntil(until)
	}
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	after := lightWork(f.work)
	after.Status = status
	err := reconcile.PutStatus(within, r.Hub.GetClient(), after)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		until := r.Clock.Now().Add(hubPause)
		r.notes.change(f.owner, func(n *note) { n.hubSilentUntil = until })
		return reconcile.RetryBy(ctx, fmt.Errorf("the hub did not answer: %w", err), until)
	case err != nil:
		return reconcile.FromError(client.IgnoreNotFound(err))
	}
	r.wroteWork(f, after)
	if e, changed := appliedEvent(&f.work.Status, &status); changed {
		r.events.record(f.work.ObjectMeta, e)
	}
	f.work = after
	return reconcile.Done()
}
