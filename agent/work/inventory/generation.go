package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationGeneration on an AppliedManifestWork is the UID and the generation of the work that was applied last, as
// far as that was recorded, separated by a slash. A copy of an earlier generation on disk is not used, whoever put it
// there. It is Spokelet's own addition; other agents ignore it.
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
