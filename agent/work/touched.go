package work

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	workv1 "open-cluster-management.io/api/work/v1"
)

// workTouched reports whether somebody else wrote the status of a work, which is then put right. An event of our own
// write that comes before the answer to it counts, too, and costs a pass without a request.
func (r *Reconciler) workTouched(before, after *workv1.ManifestWork) bool {
	return after.ResourceVersion != r.memory.of(holder{name: after.Name}).work.version &&
		!equality.Semantic.DeepEqual(before.Status, after.Status)
}

// appliedTouched tells the same of the list of an AppliedManifestWork: without an entry nobody would delete its object.
func (r *Reconciler) appliedTouched(before, after *workv1.AppliedManifestWork) bool {
	return after.ResourceVersion != r.memory.of(holder{name: after.Spec.ManifestWorkName}).applied.version &&
		!slices.Equal(before.Status.AppliedResources, after.Status.AppliedResources)
}

// believe forgets a last write that a cache has still not seen after its time: what is decided on the older copy may be
// wrong, and the event of the write, when it comes at last, must wake the work.
func (r *Reconciler) believe(f *facts, known recall) {
	work := known.work.uid == f.work.UID && olderVersion(f.work.ResourceVersion, known.work.version)
	applied := f.applied != nil && known.applied.uid == f.applied.UID &&
		olderVersion(f.applied.ResourceVersion, known.applied.version)
	if !work && !applied {
		return
	}
	r.memory.change(f.holder, func(k *recall) {
		if work {
			k.work.version = ""
		}
		if applied {
			k.applied.version = ""
		}
	})
}
