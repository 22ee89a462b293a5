package definition

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Beyond returns the parts of a definition that ours lacks: versions, the stored version, and fields. Applying ours
// would delete them, and the data in them.
func Beyond(have, ours *apiextensionsv1.CustomResourceDefinition) []string {
	var more []string
	for i := range have.Spec.Versions {
		version := &have.Spec.Versions[i]
		at := slices.IndexFunc(ours.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version.Name
		})
		switch {
		case at < 0:
			more = append(more, "version "+version.Name)
			continue
		case version.Storage && !ours.Spec.Versions[at].Storage:
			more = append(more, "version "+version.Name+" as the stored one")
		}
		if version.Schema != nil && ours.Spec.Versions[at].Schema != nil {
			more = append(more, fieldsBeyond(
				version.Name, version.Schema.OpenAPIV3Schema, ours.Spec.Versions[at].Schema.OpenAPIV3Schema)...)
		}
	}
	return more
}

// LacksVersionsOnly reports whether a definition has versions of ours, as we have them, and nothing else.
func LacksVersionsOnly(have, ours *apiextensionsv1.CustomResourceDefinition) bool {
	for i := range have.Spec.Versions {
		version := &have.Spec.Versions[i]
		if !slices.ContainsFunc(ours.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return equality.Semantic.DeepEqual(&v, version)
		}) {
			return false
		}
	}
	return len(have.Spec.Versions) < len(ours.Spec.Versions)
}

// fieldsBeyond returns the paths of the fields that are only in the first schema.
func fieldsBeyond(path string, have, ours *apiextensionsv1.JSONSchemaProps) []string {
	if have == nil || ours == nil || (ours.XPreserveUnknownFields != nil && *ours.XPreserveUnknownFields) {
		return nil
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(have.Properties)) {
		field := have.Properties[name]
		known, found := ours.Properties[name]
		if !found {
			if ours.AdditionalProperties == nil {
				more = append(more, path+"."+name)
			}
			continue
		}
		more = append(more, fieldsBeyond(path+"."+name, &field, &known)...)
	}
	if have.Items != nil && ours.Items != nil {
		more = append(more, fieldsBeyond(path+"[]", have.Items.Schema, ours.Items.Schema)...)
	}
	if have.AdditionalProperties != nil && ours.AdditionalProperties != nil {
		more = append(more, fieldsBeyond(path+"[]", have.AdditionalProperties.Schema, ours.AdditionalProperties.Schema)...)
	}
	return more
}
