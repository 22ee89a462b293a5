package inventory

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// AnnotationGeneration on an AppliedManifestWork is the UID and the generation of the work that was applied last, as
// far as that was recorded, separated by a slash. A copy of an earlier generation on disk is not used, no matter who
// put it there. It is Spokelet's own addition; other agents ignore it.
const AnnotationGeneration = "work.spokelet.io/generation"

// SetGeneration writes the generation of a work into its AppliedManifestWork, and reports whether that changed it. A
// work that went back changes nothing: see GoBack.
func SetGeneration(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	return !WentBack(applied, work) && setGeneration(applied, work)
}

// setGeneration does so whatever the generation.
func setGeneration(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	value := string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
	if applied.Annotations[AnnotationGeneration] == value {
		return false
	}
	setAnnotation(applied, AnnotationGeneration, value)
	return true
}

// IsRecorded reports whether an AppliedManifestWork records what was applied.
func IsRecorded(applied *workv1.AppliedManifestWork) bool {
	_, known := applied.Annotations[AnnotationGeneration]
	return known
}

// Outdated returns why a copy of a work, on disk or in the cache of the hub, may be older than the work that was
// applied, as the AppliedManifestWork records it; empty when it is not, or when nothing was recorded. A record that
// cannot be read is not trusted.
func Outdated(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) string {
	if !IsRecorded(applied) {
		return ""
	}
	uid, generation, err := recorded(applied)
	switch {
	case err != nil:
		return "the generation in the AppliedManifestWork cannot be read"
	case uid != work.UID:
		return "the work that was applied is another one"
	case work.Generation < generation:
		return fmt.Sprintf("it is of generation %d, and generation %d was applied", work.Generation, generation)
	}
	return ""
}

// recorded returns the UID and the generation of the work that was applied.
func recorded(applied *workv1.AppliedManifestWork) (types.UID, int64, error) {
	uid, text, _ := strings.Cut(applied.Annotations[AnnotationGeneration], "/")
	generation, err := strconv.ParseInt(text, 10, 64)
	return types.UID(uid), generation, err
}

// AnnotationOlder on an AppliedManifestWork says since when its work is of an earlier generation than was applied, so
// that the objects which the work does not have are held until it has them or a person confirms their deletion. Another
// agent ignores it. It is Spokelet's own addition.
const AnnotationOlder = "work.spokelet.io/older"

// WentBack reports whether a work is of an earlier generation than was applied of this very work, as far as that is
// recorded. A hub never does so, unless it was restored to an earlier state. A work of another UID proves nothing:
// a user who deletes a work and creates it again means what it says now.
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
