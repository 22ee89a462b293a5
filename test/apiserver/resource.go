package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// Resource is one kind of objects that a Server has, in the version in which it is stored.
type Resource struct {
	schema.GroupVersionResource

	// Served are the versions that are served.
	Served     []string
	Kind       string
	Namespaced bool
	// Status reports whether the status is a subresource: then other writes do not change it, and writes of it change
	// nothing else.
	Status bool
	// Counts reports whether changes of what is wanted are counted in metadata.generation.
	Counts bool
	// definition is nil for what is built in, of which fields are neither known nor checked.
	definition *definition
	// versions are the definitions of all versions, and converted reports whether a webhook converts between them.
	// Otherwise only apiVersion differs.
	versions  map[string]*definition
	converted bool
	webhook   http.Handler
}

// definition checks and completes objects by the schema of a CustomResourceDefinition. Its rules in CEL are not
// evaluated.
type definition struct {
	schema *structural.Structural
	values *validate.SchemaValidator
}

// gvk is the version and kind of the objects.
func (r *Resource) gvk() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// builtIn returns a resource whose fields are not checked.
func builtIn(group, resource, kind string, namespaced, status, counts bool) Resource {
	return Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		Served:               []string{"v1"},
		Kind:                 kind, Namespaced: namespaced, Status: status, Counts: counts,
	}
}

// BuiltIn are the resources that every API server has and that this project uses.
func BuiltIn() []Resource {
	return []Resource{
		builtIn("", "namespaces", "Namespace", false, true, false),
		builtIn("", "configmaps", "ConfigMap", true, false, false),
		builtIn("", "secrets", "Secret", true, false, false),
		builtIn("", "serviceaccounts", "ServiceAccount", true, false, false),
		builtIn("", "events", "Event", true, false, false),
		builtIn("", "nodes", "Node", false, true, false),
		builtIn("", "pods", "Pod", true, true, false),
		builtIn("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false, true, true),
		builtIn("apps", "controllerrevisions", "ControllerRevision", true, false, false),
		builtIn("apps", "deployments", "Deployment", true, true, true),
		builtIn("apps", "daemonsets", "DaemonSet", true, true, true),
		builtIn("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false, false, false),
		builtIn("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", false, false, false),
		builtIn("batch", "jobs", "Job", true, true, false),
		builtIn("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", false, true, false),
		builtIn("coordination.k8s.io", "leases", "Lease", true, false, false),
		builtIn("events.k8s.io", "events", "Event", true, false, false),
		builtIn("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", false, false, false),
		builtIn("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", false, false, false),
		builtIn("rbac.authorization.k8s.io", "roles", "Role", true, false, false),
		builtIn("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", true, false, false),
	}
}

// Defined returns the resources of CustomResourceDefinitions, each in the version in which it is stored.
func Defined(documents [][]byte) ([]Resource, error) {
	all := make([]Resource, len(documents))
	for i, document := range documents {
		var err error
		if all[i], err = definedBy(document); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func definedBy(document []byte) (Resource, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(document, &crd); err != nil {
		return Resource{}, fmt.Errorf("reading a definition: %w", err)
	}
	r := Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural},
		Kind:                 crd.Spec.Names.Kind, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Counts: true, versions: map[string]*definition{},
	}
	r.converted = crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		definition, err := newDefinition(version)
		if err != nil {
			return Resource{}, fmt.Errorf("reading the schema of %s: %w", crd.Name, err)
		}
		if r.versions[version.Name] = definition; version.Served {
			r.Served = append(r.Served, version.Name)
		}
		if version.Storage {
			r.Version, r.definition = version.Name, definition
			r.Status = version.Subresources != nil && version.Subresources.Status != nil
		}
	}
	if r.definition == nil {
		return Resource{}, fmt.Errorf("%s stores no version", crd.Name)
	}
	return r, nil
}

// newDefinition reads the schema of a version.
func newDefinition(version *apiextensionsv1.CustomResourceDefinitionVersion) (*definition, error) {
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("converting that of %s: %w", version.Name, err)
	}
	whole, err := structural.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("reading that of %s: %w", version.Name, err)
	}
	return &definition{
		schema: whole, values: validate.NewSchemaValidator(whole.ToKubeOpenAPI(), nil, "", strfmt.Default),
	}, nil
}

// complete drops unknown fields from an object and fills in defaults.
func (r *Resource) complete(o object) {
	if r.definition == nil {
		return
	}
	pruning.Prune(map[string]any(o), r.definition.schema, true)
	fill(map[string]any(o), r.definition.schema)
}

// fill fills in the defaults of a schema.
func fill(value any, s *structural.Structural) {
	switch value := value.(type) {
	case map[string]any:
		for name := range s.Properties {
			property := s.Properties[name]
			if _, set := value[name]; !set && property.Default.Object != nil {
				value[name] = runtime.DeepCopyJSONValue(property.Default.Object)
			}
			if value[name] != nil {
				fill(value[name], &property)
			}
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			for name, one := range value {
				if _, known := s.Properties[name]; !known {
					fill(one, s.AdditionalProperties.Structural)
				}
			}
		}
	case []any:
		for _, one := range value {
			if s.Items != nil {
				fill(one, s.Items)
			}
		}
	}
}

// check returns what is wrong with an object.
func (r *Resource) check(o object) field.ErrorList {
	if r.definition == nil {
		return nil
	}
	var wrong field.ErrorList
	for _, err := range r.definition.values.Validate(map[string]any(o)).Errors {
		wrong = append(wrong, field.Invalid(nil, nil, err.Error()))
	}
	return append(wrong, listtype.ValidateListSetsAndMaps(nil, r.definition.schema, o)...)
}

// described holds what discovery says of the resource.
func (r *Resource) described() []metav1.APIResource {
	verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	all := []metav1.APIResource{{
		Name: r.Resource, SingularName: strings.ToLower(r.Kind), Namespaced: r.Namespaced, Kind: r.Kind, Verbs: verbs,
	}}
	sub := func(name, kind string, verbs ...string) {
		all = append(all, metav1.APIResource{
			Name: r.Resource + "/" + name, Namespaced: r.Namespaced, Kind: kind, Verbs: verbs,
		})
	}
	if r.Status {
		sub("status", r.Kind, "get", "patch", "update")
	}
	switch r.Resource {
	case "certificatesigningrequests":
		sub("approval", r.Kind, "get", "patch", "update")
	case "serviceaccounts":
		sub("token", "TokenRequest", "create")
	}
	return all
}
