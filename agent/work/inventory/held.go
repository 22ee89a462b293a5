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

// AnnotationEvictionConfirmed on an AppliedManifestWork that is held is the name of the list of works with which a
// person confirmed the deletion of its objects. It is Spokelet's own addition.
const AnnotationEvictionConfirmed = "work.spokelet.io/eviction-confirmed"

// IsHeld reports whether the objects of an AppliedManifestWork are held.
func IsHeld(applied *workv1.AppliedManifestWork) bool {
	return HeldSince(applied) != ""
}

// HeldSince returns since when the objects of an AppliedManifestWork are held, as it is recorded; empty when they are
// not.
func HeldSince(applied *workv1.AppliedManifestWork) string {
	return applied.Annotations[AnnotationHeld]
}

// Confirmed returns with which list of works a person confirmed the deletion of what is held; empty for none.
func Confirmed(applied *workv1.AppliedManifestWork) string {
	return applied.Annotations[AnnotationEvictionConfirmed]
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

// Hold writes since when the objects of an AppliedManifestWork are held; zero means that they are not, and that nothing
// is confirmed any more.
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
	setAnnotation(after, AnnotationEvictionConfirmed, "")
	return w.patch(ctx, applied, after, "marking the AppliedManifestWork whose work is missing")
}

// Confirm writes with which list of works a person confirmed the deletion of what is held.
func (w *Writer) Confirm(ctx context.Context, applied *workv1.AppliedManifestWork, list string,
) (*workv1.AppliedManifestWork, error) {
	if Confirmed(applied) == list {
		return applied, nil
	}
	after := applied.DeepCopy()
	setAnnotation(after, AnnotationEvictionConfirmed, list)
	return w.patch(ctx, applied, after, "recording on the AppliedManifestWork that its eviction is confirmed")
}
