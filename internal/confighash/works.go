package confighash

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Key is the key of a config in the config-spec-hash annotation of a ManifestWork: resource[.group]/namespace/name,
// with an empty namespace for a cluster-scoped config (docs/reference/hub.md, "Works of an add-on").
func Key(resource addonv1beta1.ConfigGroupResource, config addonv1beta1.ConfigReferent) string {
	kind := resource.Resource
	if resource.Group != "" {
		kind += "." + resource.Group
	}
	return kind + "/" + config.Namespace + "/" + config.Name
}

// Map returns the content of the config-spec-hash annotation of an add-on's ManifestWorks: the hash of every desired
// config by its key. References without a desired config are left out.
func Map(references []addonv1beta1.ConfigReference) map[string]string {
	hashes := make(map[string]string, len(references))
	for _, reference := range references {
		if desired := reference.DesiredConfig; desired != nil {
			hashes[Key(reference.ConfigGroupResource, desired.ConfigReferent)] = desired.SpecHash
		}
	}
	return hashes
}
