package inventory

import (
	"context"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// AnnotationOlder on an AppliedManifestWork says since when its work is of an earlier generation than was applied, so
// that the objects which the work does not have are held until it has them or a person confirms their deletion. Another
// agent ignores it. It is Spokelet's own addition.
const AnnotationOlder = "work.spokelet.io/older"

// WentBack reports whether a work is of an earlier generation than was applied of this very work, as far as that is
// recorded. A hub never does so, unless it was restored to an earlier state. A work of another UID proves nothing:
// whoever deletes a work and creates it again means what it says now.
func WentBack(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	uid, generation, err := recorded(applied)
	return err == nil && uid == work.UID && work.Generation < generation
}

// IsOlder reports whether the objects are held that a work does not have since it went back.
func IsOlder(applied *workv1.AppliedManifestWork) bool { return OlderSince(applied) != "" }

// OlderSince returns since when they are, as it is recorded; empty when they are not.
func OlderSince(applied *workv1.AppliedManifestWork) string {
	return applied.Annotations[AnnotationOlder]
}

// Whole reports whether a work surely has all objects that are tracked.
func Whole(manifests []manifest.Manifest, tracked []workv1.AppliedManifestResourceMeta) bool {
	for i := range manifests {
		if !manifests[i].Located() {
			return false
		}
	}
	return len(Unwanted(manifests, tracked)) == 0
}

// GoBack records the earlier generation of a work, and since when the objects are held that it does not have, in one
// write; zero means that none are. What was confirmed before was something else.
func (w *Writer) GoBack(ctx context.Context, applied *workv1.AppliedManifestWork, work *workv1.ManifestWork,
	since time.Time,
) (*workv1.AppliedManifestWork, error) {
	after := applied.DeepCopy()
	setGeneration(after, work)
	if !since.IsZero() {
		setAnnotation(after, AnnotationOlder, since.UTC().Format(time.RFC3339))
		setAnnotation(after, AnnotationEvictionConfirmed, "")
	}
	return w.patch(ctx, applied, after, "marking the AppliedManifestWork whose work is older than what was applied")
}

// Release takes the mark of GoBack off, and what was confirmed.
func (w *Writer) Release(ctx context.Context, applied *workv1.AppliedManifestWork,
) (*workv1.AppliedManifestWork, error) {
	after := applied.DeepCopy()
	setAnnotation(after, AnnotationOlder, "")
	setAnnotation(after, AnnotationEvictionConfirmed, "")
	return w.patch(ctx, applied, after, "marking that the objects of the AppliedManifestWork are held no more")
}
