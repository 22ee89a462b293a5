package inventory

import (
	"maps"
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationLabels on an AppliedManifestWork lists, separated by commas, the keys of the labels that it has from its
// ManifestWork, so that those which the work loses can be removed and those of others stay. It is Spokelet's own
// addition; other agents ignore it.
const AnnotationLabels = "work.spokelet.io/labels"

// copyLabels gives an AppliedManifestWork the labels of its work, removes those that it had from the work and that the
// work has no more, and leaves all others. Without the annotation, as other agents leave it, none is removed.
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
	setAnnotation(applied, AnnotationLabels, strings.Join(slices.Sorted(maps.Keys(labels)), ","))
}

// setAnnotation sets an annotation, or removes it when the value is empty.
func setAnnotation(applied *workv1.AppliedManifestWork, key, value string) {
	switch {
	case value == "":
		delete(applied.Annotations, key)
		return
	case applied.Annotations == nil:
		applied.Annotations = map[string]string{}
	}
	applied.Annotations[key] = value
}
