package inventory

import (
	"strconv"

	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationGeneration on an AppliedManifestWork is the UID and the generation of the work that was applied last, as
// far as that was recorded, separated by a slash. A copy of an earlier generation on disk is not used, whoever put it
// there. It is Spokelet's own addition; other agents ignore it.
const AnnotationGeneration = "work.spokelet.io/generation"

// SetGeneration writes the generation of a work into its AppliedManifestWork, and reports whether that changed it.
func SetGeneration(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	value := string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
	if applied.Annotations[AnnotationGeneration] == value {
		return false
	}
	setAnnotation(applied, AnnotationGeneration, value)
	return true
}
