package work

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// confirm records that a person confirmed that the objects of the works of a list go, of which this is one.
func (r *Reconciler) confirm(ctx context.Context, f *facts, list string) error {
	applied, err := r.inventory.Confirm(ctx, f.applied, list)
	if err != nil || applied == f.applied {
		return err
	}
	r.wroteApplied(f, applied)
	return nil
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

// holds reports whether the objects of works are held that are missing on the hub, or there in an older content.
func (r *Reconciler) holds() bool { return r.Missing == missing.Hold }

// observeMissing returns the works of this agent and hub that the hub does not have, as the caches show them, and the
// ManagedCluster; nil when there is none.
func (r *Reconciler) observeMissing(ctx context.Context, now time.Time,
) (missing.Facts, *clusterv1.ManagedCluster, error) {
	f := missing.Facts{}
	var works workv1.ManifestWorkList
	if err := r.Hub.GetCache().List(ctx, &works, client.InNamespace(r.Cluster), client.UnsafeDisableDeepCopy,
		decode.Metadata); err != nil {
		return f, nil, fmt.Errorf("listing the works of the hub: %w", err)
	}
	there := make(map[string]bool, len(works.Items))
	for i := range works.Items {
		there[works.Items[i].Name] = true
	}
	var all workv1.AppliedManifestWorkList
	if err := r.Spoke.GetCache().List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return f, nil, fmt.Errorf("listing the AppliedManifestWorks: %w", err)
	}
	for i := range all.Items {
		applied := &all.Items[i]
		name, ours := r.owns(applied)
		if !ours || !applied.DeletionTimestamp.IsZero() {
			continue
		}
		f.Known++
		switch {
		case !there[name] && r.EvictionGrace >= EvictionDisabled: // Its objects stay whatever happens.
		case !there[name]:
			f.Works = append(f.Works, missing.Work{
				Name: name, UID: applied.UID, Since: since(applied, now),
				Held: inventory.HeldSince(applied), Confirmed: inventory.Confirmed(applied),
			})
		case inventory.IsOlder(applied):
			older := missing.Work{Name: name, UID: applied.UID, Older: true, Held: inventory.OlderSince(applied)}
			if !inventory.IsHeld(applied) { // Otherwise the loss of all of it was confirmed, which is over.
				older.Confirmed = inventory.Confirmed(applied)
			}
			f.Older = append(f.Older, older)
		}
	}
	cluster := &clusterv1.ManagedCluster{}
	switch err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Cluster}, cluster); {
	case apierrors.IsNotFound(err):
		return f, nil, nil
	case err != nil:
		return f, nil, fmt.Errorf("reading ManagedCluster %s: %w", r.Cluster, err)
	}
	f.Leaving = !cluster.DeletionTimestamp.IsZero()
	f.Confirmation = cluster.Annotations[names.AnnotationConfirmEviction]
	return f, cluster, nil
}

// owns returns the work of an AppliedManifestWork, false when that is not of this agent and of the present hub.
func (r *Reconciler) owns(applied *workv1.AppliedManifestWork) (work string, ours bool) {
	work, ours = r.inventory.Work(applied)
	return work, ours && applied.Spec.AgentID == r.AgentID
}

// graceStart is when a grace period begins that is written in whole seconds: rounded up, so that it is never cut short.
func graceStart(now time.Time) metav1.Time {
	return metav1.NewTime(now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
}

// since returns when the work of an AppliedManifestWork was first found missing.
func since(applied *workv1.AppliedManifestWork, now time.Time) time.Time {
	if at := inventory.MissingSince(applied); !at.IsZero() {
		return at
	}
	return graceStart(now).Time
}
