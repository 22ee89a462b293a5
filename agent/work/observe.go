package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/offline"
)

// facts is all that a pass decides upon. The objects are those of the caches and must not be changed.
type facts struct {
	now    time.Time
	holder holder
	// work and applied are nil when there is none.
	work    *workv1.ManifestWork
	applied *workv1.AppliedManifestWork
	// stale tells that a cache has not seen the last write of this process.
	stale bool
	// manifests is the reading of the spec.
	manifests []manifest
	// offline tells that the hub has not listed its works yet, and that work is its copy of before, with the label; nil
	// then says nothing.
	offline bool
	copied  *offline.Copy
}

// phase is what a pass is about.
type phase int

const (
	// phaseGone: there is no work; what it left is for the evictor.
	phaseGone phase = iota
	// phaseAbandon: the work vanished in the moment in which its objects were made; they go at once.
	phaseAbandon
	// phaseStale: a cache must catch up first.
	phaseStale
	// phaseRelease: the work is being deleted.
	phaseRelease
	// phaseDrain: the work lives, but its AppliedManifestWork is being deleted; its objects go before they come again.
	phaseDrain
	// phaseApply: the objects are to be as the work says.
	phaseApply
	// phaseUnknown: the hub is away and there is no copy of the work that can be used.
	phaseUnknown
	// phaseOffline: the hub is away; the objects are to stay as the copy of the work says.
	phaseOffline
)

// phase decides what the pass is about.
func (f *facts) phase() phase {
	switch {
	case f.offline && f.work == nil:
		return phaseUnknown
	case f.offline && !f.stale:
		return phaseOffline
	case f.work == nil && f.applied != nil:
		return phaseAbandon
	case f.work == nil:
		return phaseGone
	case f.stale:
		return phaseStale
	case !f.work.DeletionTimestamp.IsZero():
		return phaseRelease
	case f.applied != nil && !f.applied.DeletionTimestamp.IsZero():
		return phaseDrain
	}
	return phaseApply
}

// spares reports whether the work orphans an object. Who asked for that and deleted the work in the same moment gets
// it, although no pass came between the two.
func (f *facts) spares(id identity) bool {
	return f.work != nil && !ownedBy(f.work.Spec.DeleteOption, id)
}

// observe collects the facts about a work.
func (r *Reconciler) observe(ctx context.Context, name string) (*facts, error) {
	f := &facts{now: r.Clock.Now(), holder: holder{name: name}}
	if r.offline() {
		return r.observeOffline(ctx, f)
	}
	work := &workv1.ManifestWork{}
	err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Namespace: r.Cluster, Name: name}, work)
	switch {
	case apierrors.IsNotFound(err):
		f.applied, err = r.abandoned(ctx, f)
		return f, err
	case err != nil:
		return f, fmt.Errorf("reading the ManifestWork %s: %w", name, err)
	}
	f.work = work
	f.applied, err = readApplied(ctx, r.Spoke.GetClient(), appliedName(r.HubHash, name))
	if err != nil {
		return f, err
	}
	r.checkLag(f)
	if f.phase() == phaseApply {
		f.manifests = r.readManifests(f)
	}
	return f, nil
}

// abandoned returns the AppliedManifestWork that was made for a work which vanished before it could hold it, if any.
// Its objects go at once, so the hub has to confirm that the work does not exist.
func (r *Reconciler) abandoned(ctx context.Context, f *facts) (*workv1.AppliedManifestWork, error) {
	fresh := r.memory.of(f.holder).fresh
	if fresh == "" {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	within, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	exists, err := r.onHub(within, r.Hub.GetAPIReader(), f.holder.name)
	if err != nil || exists {
		return nil, err
	}
	live, err := readApplied(ctx, r.Spoke.GetAPIReader(), appliedName(r.HubHash, f.holder.name))
	if err != nil || live == nil || live.UID != fresh {
		return nil, err
	}
	return live, nil
}

// onHub reports whether a work exists on the hub.
func (r *Reconciler) onHub(ctx context.Context, hub client.Reader, name string) (bool, error) {
	err := hub.Get(ctx, types.NamespacedName{Namespace: r.Cluster, Name: name}, &workv1.ManifestWork{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the ManifestWork %s: %w", name, err)
	}
	return true, nil
}

// readApplied reads an AppliedManifestWork; nil without error means that there is none.
func readApplied(ctx context.Context, c client.Reader, name string) (*workv1.AppliedManifestWork, error) {
	applied := &workv1.AppliedManifestWork{}
	err := c.Get(ctx, types.NamespacedName{Name: name}, applied)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer here
	case err != nil:
		return nil, fmt.Errorf("reading the AppliedManifestWork %s: %w", name, err)
	}
	return applied, nil
}

// checkLag compares the caches with the last writes of this process.
func (r *Reconciler) checkLag(f *facts) {
	known := r.memory.of(f.holder)
	if f.applied != nil && known.applied.gone && f.applied.UID == known.applied.uid {
		f.applied = nil
	}
	var uid types.UID
	var version string
	deleting := false
	if f.applied != nil {
		uid, version = f.applied.UID, f.applied.ResourceVersion
		deleting = !f.applied.DeletionTimestamp.IsZero()
	}
	f.stale = known.work.lag(f.work.UID, f.work.ResourceVersion, true, f.now) ||
		known.applied.lag(uid, version, deleting, f.now) || known.work.left(f.work.UID, f.now)
	if !f.stale {
		r.believe(f, known)
	}
}

// readManifests reads the spec: what each manifest means and where its kind is served. A spec is read once; only what
// could not be mapped is tried again.
func (r *Reconciler) readManifests(f *facts) []manifest {
	known := r.memory.of(f.holder)
	spec := &f.work.Spec
	manifests := slices.Clone(known.manifests)
	if known.uid != f.work.UID || known.generation != f.work.Generation {
		manifests = make([]manifest, len(spec.Workload.Manifests))
		for i := range manifests {
			manifests[i] = parseManifest(i, spec.Workload.Manifests[i].Raw)
		}
	}
	changed := known.uid != f.work.UID || known.generation != f.work.Generation
	for i := range manifests {
		m := &manifests[i]
		if !m.retriable() {
			continue
		}
		m.resolve(r.mapper, spec)
		changed = true
	}
	refuseDuplicates(manifests)
	if changed {
		r.memory.change(f.holder, func(k *recall) {
			k.uid, k.generation, k.manifests = f.work.UID, f.work.Generation, slices.Clone(manifests)
		})
	}
	return manifests
}

// retriable reports whether the error of a manifest may go away without the spec changing.
func (m *manifest) retriable() bool { return m.decoded() && !m.mapped() }

// unserved reports whether the spoke does not serve the kind of the manifest.
func (m *manifest) unserved() bool {
	var missing unservedError
	return errors.As(m.err, &missing)
}
