package work

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
)

// behindPause is when a pass looks again at a work of which the cache has an earlier generation than the hub.
const behindPause = time.Second

// isBehind reports whether the cache has an earlier generation of a work than was applied although the hub has a later
// one: after a restart, an API server whose own cache lags may list works as they were. A hub that does not answer says
// nothing.
func (r *Reconciler) isBehind(ctx context.Context, f *facts) bool {
	if f.applied == nil || !inventory.WentBack(f.applied, f.work) {
		return false
	}
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	live := &workv1.ManifestWork{}
	err := r.Hub.GetAPIReader().Get(within, types.NamespacedName{Namespace: r.Cluster, Name: f.work.Name}, live)
	return err == nil && live.UID == f.work.UID && live.Generation > f.work.Generation
}

// goBack records that a work went back to an earlier generation, before anything of it is applied. What the later one
// added is held from then on, unless the work has it, too.
func (r *Reconciler) goBack(ctx context.Context, f *facts) error {
	if f.applied == nil || !inventory.WentBack(f.applied, f.work) {
		return nil
	}
	var since time.Time
	if r.holds() && !inventory.Whole(f.manifests, inventory.Tracked(f.applied)) {
		since = graceStart(f.now).Time
	}
	before := f.applied
	applied, err := r.inventory.GoBack(ctx, f.applied, f.work, since)
	if err != nil {
		return err
	}
	r.wroteApplied(f, applied)
	log.FromContext(ctx).Info("the work is older than what was applied, the hub may have been restored",
		"applied", before.Annotations[inventory.AnnotationGeneration], "generation", f.work.Generation,
		"held", !since.IsZero())
	if !since.IsZero() {
		r.events.record(f.work.ObjectMeta, olderEvent())
	}
	return nil
}

// keepsNewer reports whether the objects stay that a work does not have since it went back to an earlier generation. It
// takes the mark off when the work has them all again, or a person confirmed their deletion.
func (r *Reconciler) keepsNewer(ctx context.Context, f *facts) (bool, error) {
	if !inventory.IsOlder(f.applied) {
		return false, nil
	}
	if r.holds() && !inventory.Whole(f.manifests, inventory.Tracked(f.applied)) {
		lost, _, err := r.observeMissing(ctx, f.now)
		if err != nil {
			return true, err
		}
		switch missing.Decide(lost)[f.work.Name] {
		case missing.Evicted:
		case missing.Confirmed:
			return true, r.confirm(ctx, f, lost.Confirmation)
		case missing.Waits, missing.Held:
			return true, nil
		}
	}
	applied, err := r.inventory.Release(ctx, f.applied)
	if err != nil {
		return true, err
	}
	r.wroteApplied(f, applied)
	return false, nil
}
