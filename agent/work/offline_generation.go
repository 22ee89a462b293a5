package work

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// AnnotationGeneration on an AppliedManifestWork is the UID and the generation of the work that was applied last, as
// far as that was written down, separated by a slash. A copy of an earlier generation is not used, whoever put it on
// the disk. It is Spokelet's own addition; other agents ignore it.
const AnnotationGeneration = "work.spokelet.io/generation"

// setGeneration writes the generation of a work into its AppliedManifestWork, and reports whether it was another one.
func setGeneration(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) bool {
	value := string(work.UID) + "/" + strconv.FormatInt(work.Generation, 10)
	if applied.Annotations[AnnotationGeneration] == value {
		return false
	}
	if applied.Annotations == nil {
		applied.Annotations = map[string]string{}
	}
	applied.Annotations[AnnotationGeneration] = value
	return true
}

// outdated says why a copy is older than what was applied by the word of the AppliedManifestWork; empty when it is not,
// or when nothing was written down. What cannot be read is not trusted.
func outdated(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork) string {
	value, known := applied.Annotations[AnnotationGeneration]
	if !known {
		return ""
	}
	uid, text, _ := strings.Cut(value, "/")
	generation, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return "the generation in the AppliedManifestWork cannot be read"
	case types.UID(uid) != work.UID:
		return "the work that was applied is another one"
	case work.Generation < generation:
		return fmt.Sprintf("it is of generation %d, and generation %d was applied", work.Generation, generation)
	}
	return ""
}

// recordGeneration writes down which generation of a work was applied, unless that stands there: new works have it from
// the beginning, and works with new objects from the write that lists those.
func (k *copier) recordGeneration(ctx context.Context, work *workv1.ManifestWork, applied *workv1.AppliedManifestWork,
) error {
	after := applied.DeepCopy()
	if !setGeneration(after, work) {
		return nil
	}
	if _, err := reconcile.PatchMain(ctx, k.Spoke.GetClient(), applied, after); err != nil {
		return fmt.Errorf("writing the generation into the AppliedManifestWork %s: %w", applied.Name, err)
	}
	k.wroteApplied(&facts{holder: holder{name: work.Name}}, after)
	return nil
}
