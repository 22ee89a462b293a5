package work

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// lastWrite returns what is kept of the managed fields of a ManifestWork: one entry with the time at which its spec was
// written last. The API server keeps an entry of a writer until another one has taken all its fields over.
func lastWrite(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var last *metav1.Time
	for i := range entries {
		e := &entries[i]
		of := e.FieldsV1 == nil || strings.Contains(e.FieldsV1.GetRawString(), `"f:spec"`)
		if e.Subresource != "" || e.Time == nil || !of {
			continue
		}
		if last == nil || last.Before(e.Time) {
			last = e.Time
		}
	}
	if last == nil {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Time: last}}
}

// timed says of a content of a work whether it was told how long it took.
type timed struct {
	uid        types.UID
	generation int64
	over       bool
}

// arrival returns how long the present content of a work took from its write on the hub until it was applied, by the
// status after a pass; zero while that is not so, was told before, or is not known. A content of which an earlier
// process has reported something is not timed: it may have been applied then.
func (t timed) arrival(
	work *workv1.ManifestWork, after []metav1.Condition, now time.Time,
) (next timed, took time.Duration, arrived bool) {
	if t.uid != work.UID || t.generation != work.Generation {
		said := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		t = timed{
			uid: work.UID, generation: work.Generation,
			over: len(work.ManagedFields) != 1 || said != nil && said.ObservedGeneration == work.Generation,
		}
	}
	is := meta.FindStatusCondition(after, workv1.WorkApplied)
	if t.over || is == nil || is.Status != metav1.ConditionTrue || is.ObservedGeneration != work.Generation {
		return t, 0, false
	}
	t.over = true
	return t, max(now.Sub(work.ManagedFields[0].Time.Time), 0), true // The clock of the hub may be ahead.
}

// time tells how long the content of a work took to be applied, once.
func (r *Reconciler) time(f *facts, after workv1.ManifestWorkStatus) {
	next, took, applied := r.notes.of(f.owner).timed.arrival(f.reported(), after.Conditions, f.now)
	r.notes.change(f.owner, func(n *note) { n.timed = next })
	if applied {
		r.counts.arrived(took)
	}
}
