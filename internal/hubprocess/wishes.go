package hubprocess

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// SameWishes reports whether two copies of an add-on ask for the same, of which either may be from the cache: its
// labels, annotations and spec are what is rendered. The cache does without labels beyond its bound, and without the
// copy of the add-on that kubectl keeps in an annotation.
func SameWishes(a, b *addonv1beta1.ManagedClusterAddOn) bool {
	annotations := func(of *addonv1beta1.ManagedClusterAddOn) map[string]string {
		all := maps.Clone(of.Annotations)
		delete(all, corev1.LastAppliedConfigAnnotation)
		return all
	}
	return a.Generation == b.Generation && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		maps.Equal(annotations(a), annotations(b)) && maps.Equal(Labels(a), Labels(b))
}
