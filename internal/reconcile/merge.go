package reconcile

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithEntries returns a copy of labels or annotations with the given entries set; those of others stay.
func WithEntries(have, want map[string]string) map[string]string {
	merged := maps.Clone(have)
	if merged == nil {
		merged = make(map[string]string, len(want))
	}
	maps.Copy(merged, want)
	return merged
}

// WithOwners returns a copy of owner references with the given ones set; those of others stay.
func WithOwners(have, want []metav1.OwnerReference) []metav1.OwnerReference {
	merged := slices.Clone(have)
	for _, owner := range want {
		at := slices.IndexFunc(merged, func(other metav1.OwnerReference) bool { return other.UID == owner.UID })
		if at < 0 {
			merged = append(merged, owner)
			continue
		}
		merged[at] = owner
	}
	return merged
}
