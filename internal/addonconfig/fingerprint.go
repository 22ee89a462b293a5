package addonconfig

import (
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
)

// Fingerprint identifies the content of references in their order.
func Fingerprint(references []addonv1beta1.ConfigReference) string {
	keys := make([]string, 0, len(references))
	for _, reference := range references {
		key := reference.Group + "/" + reference.Resource
		if desired := reference.DesiredConfig; desired != nil {
			key = confighash.Key(reference.ConfigGroupResource, desired.ConfigReferent) + "@" + desired.SpecHash
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ",")
}

// FingerprintOf identifies contents in their order, as Fingerprint does for references.
func FingerprintOf(contents []Chosen) string {
	references := make([]addonv1beta1.ConfigReference, 0, len(contents))
	for _, c := range contents {
		references = append(references, c.reference(nil))
	}
	return Fingerprint(references)
}
