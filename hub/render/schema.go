package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

// definition is one version of a kind of an API of OCM.
type definition struct {
	namespaced bool
	schema     *apiextensionsv1.JSONSchemaProps
	// values returns the schema for the check of values.
	values func() (*spec.Schema, error)
}

// definitions are the kinds of the APIs of OCM that a hub serves.
type definitions map[schema.GroupVersionKind]definition

// shipped returns the definitions that we ship. They are part of the program, and reading them takes longer than all
// else.
var shipped = sync.OnceValues(readDefinitions)

// readDefinitions reads the definitions that we ship.
func readDefinitions() (definitions, error) {
	all := definitions{}
	for _, document := range manifests.CRDs() {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &crd); err != nil {
			return nil, fmt.Errorf("reading a CustomResourceDefinition of this program: %w", err)
		}
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			if version.Schema == nil {
				continue
			}
			all[kind] = definition{
				namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, schema: version.Schema.OpenAPIV3Schema,
				values: sync.OnceValues(func() (*spec.Schema, error) { return valuesOf(version.Schema.OpenAPIV3Schema) }),
			}
		}
	}
	return all, nil
}

// find returns the definition of a kind; false for a kind of another API. The error is about a kind that looks like one
// of these APIs and is none.
func (d definitions) find(kind schema.GroupVersionKind) (definition, bool, error) {
	if found, known := d[kind]; known {
		return found, true, nil
	}
	var sameKind, sameGroup []string
	ours := false
	for other := range d {
		named := other.GroupVersion().String() + " " + other.Kind
		ours = ours || other.Group == kind.Group
		// Other projects have kinds of the same name, but none of these has the name of a kind of add-ons.
		confused := other.Group == kind.Group || other.Group == addonv1beta1.GroupName || kind.Group == ""
		switch {
		case confused && strings.EqualFold(other.Kind, kind.Kind):
			sameKind = append(sameKind, named)
		case other.Group == kind.Group:
			sameGroup = append(sameGroup, named)
		}
	}
	slices.Sort(sameKind)
	slices.Sort(sameGroup)
	switch {
	case len(sameKind) > 0:
		return definition{}, false, fmt.Errorf("the hub does not serve this kind; it serves %s",
			strings.Join(sameKind, ", "))
	case ours:
		return definition{}, false, fmt.Errorf("the hub does not serve this kind; in this group it serves %s",
			strings.Join(sameGroup, ", "))
	}
	return definition{}, false, nil
}

// complete sets the defaults of an object and returns all that is wrong with it, as the API server would.
func (d definition) complete(u *unstructured.Unstructured) error {
	problems := d.metadataProblems(u)
	for _, name := range slices.Sorted(maps.Keys(u.Object)) {
		switch below, known := d.schema.Properties[name]; {
		case name == "apiVersion", name == "kind", name == "metadata":
		case !known:
			problems = append(problems, unknownField(name, d.schema))
		default:
			u.Object[name] = walk(name, u.Object[name], &below, &problems)
		}
	}
	defaults(u.Object, d.schema)
	// What has no place in the schema would be reported once more, in other words.
	if len(problems) == 0 {
		invalid, err := d.invalid(u)
		if err != nil {
			return err
		}
		problems = invalid
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// metadataProblems returns the fields of the metadata that do not exist, have another type or are not valid.
func (d definition) metadataProblems(u *unstructured.Unstructured) []string {
	if !d.namespaced {
		u.SetNamespace("") // kubectl drops it, too.
	}
	metadata := &metav1.ObjectMeta{}
	unknown, problems := decodeMetadata("metadata", u.Object["metadata"], metadata)
	problems = append(problems, unknown...)
	for _, problem := range validation.ValidateObjectMetaAccessor(metadata, d.namespaced, validation.NameIsDNSSubdomain,
		field.NewPath("metadata")) {
		problems = append(problems, problem.Error())
	}
	return problems
}

// decodeMetadata decodes metadata, and returns its unknown fields and what else is wrong with it.
func decodeMetadata(path string, from any, into *metav1.ObjectMeta) (unknown, problems []string) {
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, []string{path + ": " + err.Error()}
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return nil, []string{path + ": " + err.Error()}
	}
	for _, problem := range strict {
		unknown = append(unknown, path+": "+problem.Error())
	}
	return unknown, nil
}

// embeddedProblems returns what an API server refuses in an object that is part of another one: a manifest. Only the
// managed cluster knows the fields of its kind, but metadata is the same for all kinds.
func embeddedProblems(path string, value any) []string {
	object, isMap := value.(map[string]any)
	if !isMap {
		return []string{path + ": it is no object"}
	}
	var problems []string
	for _, name := range []string{"apiVersion", "kind"} {
		if text, isText := object[name].(string); !isText || text == "" {
			problems = append(problems, path+"."+name+": it is required")
		}
	}
	metadata := &metav1.ObjectMeta{}
	unknown, invalid := decodeMetadata(path+".metadata", object["metadata"], metadata)
	problems = slices.Concat(problems, unknown, invalid)
	if metadata.Name == "" && metadata.GenerateName == "" {
		return problems // The caller says so.
	}
	for _, problem := range validation.ValidateObjectMetaAccessor(metadata, metadata.Namespace != "",
		checkSegment, field.NewPath(path, "metadata")) {
		problems = append(problems, problem.Error())
	}
	return problems
}

// checkSegment checks a name, or the prefix of one that is generated, which is part of a path.
func checkSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// walk sets defaults in a value of a schema, drops nulls that the schema does not allow, and reports unknown fields. It
// returns the value.
func walk(path string, value any, of *apiextensionsv1.JSONSchemaProps, problems *[]string) any {
	if of.XEmbeddedResource {
		*problems = append(*problems, embeddedProblems(path, value)...)
	}
	if of.XPreserveUnknownFields != nil && *of.XPreserveUnknownFields {
		return value
	}
	switch typed := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			below, known := of.Properties[name]
			if !known && of.AdditionalProperties != nil && of.AdditionalProperties.Schema != nil {
				below, known = *of.AdditionalProperties.Schema, true
			}
			switch {
			case !known && of.AdditionalProperties == nil:
				*problems = append(*problems, unknownField(path+"."+name, of))
			case !known:
			case typed[name] == nil && !below.Nullable:
				delete(typed, name)
			default:
				typed[name] = walk(path+"."+name, typed[name], &below, problems)
			}
		}
		defaults(typed, of)
	case []any:
		if of.Items != nil && of.Items.Schema != nil {
			for i := range typed {
				typed[i] = walk(fmt.Sprintf("%s[%d]", path, i), typed[i], of.Items.Schema, problems)
			}
		}
	}
	return value
}

// defaults sets the defaults of missing fields, and the defaults in these.
func defaults(object map[string]any, of *apiextensionsv1.JSONSchemaProps) {
	for name := range of.Properties {
		below := of.Properties[name]
		if _, stated := object[name]; stated || below.Default == nil {
			continue
		}
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(below.Default.Raw, &value); err != nil {
			continue // The API server accepts no definition with such a default.
		}
		object[name] = walk(name, value, &below, &[]string{})
	}
}

// unknownField returns the problem of a field that a schema does not have.
func unknownField(path string, of *apiextensionsv1.JSONSchemaProps) string {
	return fmt.Sprintf("%s: there is no such field; there are %s", path,
		strings.Join(slices.Sorted(maps.Keys(of.Properties)), ", "))
}

// valuesOf returns a schema as the validator reads it.
func valuesOf(from *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encoding a schema: %w", err)
	}
	of := &spec.Schema{}
	if err := json.Unmarshal(raw, of); err != nil {
		return nil, fmt.Errorf("decoding a schema: %w", err)
	}
	return of, nil
}

// invalid returns the values of an object that are not valid.
func (d definition) invalid(u *unstructured.Unstructured) ([]string, error) {
	of, err := d.values()
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, problem := range validate.NewSchemaValidator(of, nil, "", strfmt.Default).Validate(u.Object).Errors {
		problems = append(problems, strings.TrimPrefix(strings.Replace(problem.Error(), " in body", "", 1), "."))
	}
	slices.Sort(problems)
	return slices.Compact(problems), nil
}
