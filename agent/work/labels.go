package work

import (
	"maps"
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationLabels on an AppliedManifestWork lists, separated by commas, the keys of the labels that it has from its
// ManifestWork, so that those which the work loses can be taken away and those of others stay. It is Spokelet's own
// addition; other agents ignore it.
const AnnotationLabels = "work.spokelet.io/labels"

// copyLabels gives an AppliedManifestWork the labels of its work, takes away those that it had from it and that the
// work has no more, and leaves all others. Without the annotation, as other agents leave it, none is taken away.
func copyLabels(applied *workv1.AppliedManifestWork, labels map[string]string) {
	merged := maps.Clone(applied.Labels)
	for _, key := range strings.Split(applied.Annotations[AnnotationLabels], ",") {
		if _, stays := labels[key]; !stays {
			delete(merged, key)
		}
	}
	if merged == nil && len(labels) > 0 {
		merged = map[string]string{}
	}
	maps.Copy(merged, labels)
	applied.Labels = merged
	if len(labels) == 0 {
		delete(applied.Annotations, AnnotationLabels)
		return
	}
	if applied.Annotations == nil {
		applied.Annotations = map[string]string{}
	}
	applied.Annotations[AnnotationLabels] = strings.Join(slices.Sorted(maps.Keys(labels)), ",")
}
