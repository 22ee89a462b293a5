package inventory

import (
	"context"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationHeld on an AppliedManifestWork says since when its objects are held, although its work is missing on the
// hub, until a person confirms their deletion or the work is back. Meanwhile no grace period runs, so that another
// agent, which ignores the annotation, begins one. It is Spokelet's own addition.
const AnnotationHeld = "work.spokelet.io/held"

// IsHeld reports whether the objects of an AppliedManifestWork are held.
func IsHeld(applied *workv1.AppliedManifestWork) bool {
	return applied.Annotations[AnnotationHeld] != ""
}

// MissingSince returns since when the work of an AppliedManifestWork is missing, as it is recorded; zero when it is
// not.
func MissingSince(applied *workv1.AppliedManifestWork) time.Time {
	if since, err := time.Parse(time.RFC3339, applied.Annotations[AnnotationHeld]); err == nil {
		return since
	}
	if start := applied.Status.EvictionStartTime; start != nil {
		return start.Time
	}
	return time.Time{}
}

// Hold writes since when the objects of an AppliedManifestWork are held; zero means that they are not.
func (w *Writer) Hold(ctx context.Context, applied *workv1.AppliedManifestWork, since time.Time,
) (*workv1.AppliedManifestWork, error) {
	if IsHeld(applied) != since.IsZero() {
		return applied, nil
	}
	after, value := applied.DeepCopy(), ""
	if !since.IsZero() {
		value = since.UTC().Format(time.RFC3339)
	}
	setAnnotation(after, AnnotationHeld, value)
	return w.patch(ctx, applied, after, "marking the AppliedManifestWork whose work is missing")
}
