package addon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// Builder makes the objects of an agent on one cluster. Packages raw and helm have one each.
type Builder interface {
	// Build returns the objects. The same input must give the same objects, in the same order; they may be shared between
	// calls and are not changed.
	Build(ctx context.Context, in Input) ([]runtime.Object, error)
}

// ManifestsFunc is a Builder that is a function.
type ManifestsFunc func(ctx context.Context, in Input) ([]runtime.Object, error)

// Build implements Builder.
func (f ManifestsFunc) Build(ctx context.Context, in Input) ([]runtime.Object, error) {
	return f(ctx, in)
}

// Input holds what objects are made of, for one cluster.
type Input struct {
	Request

	// Namespace is the namespace of the agent on the managed cluster.
	Namespace string
	// Values are the merged values of Options.Values; the caller owns them.
	Values Values
	// Registers reports whether the agent gets credentials.
	Registers bool
}

// Install modes, as templates and charts read them.
const (
	// InstallModeDefault means that the agent runs on the managed cluster.
	InstallModeDefault = "Default"
	// InstallModeHosted means that the agent runs on a hosting cluster.
	InstallModeHosted = "Hosted"
)

// InstallMode returns InstallModeDefault or InstallModeHosted.
func (in Input) InstallMode() string {
	if in.AddOn.Annotations[names.AnnotationHostingCluster] != "" {
		return InstallModeHosted
	}
	return InstallModeDefault
}

// MaxManifestBytes is the maximum size of one object as JSON, in bytes.
const MaxManifestBytes = 500 * 1024 * 4 / 5

// schemeOf returns the scheme for typed objects.
func schemeOf(given *runtime.Scheme) (*runtime.Scheme, error) {
	if given != nil {
		return given, nil
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("collecting the types of Kubernetes: %w", err)
	}
	return scheme, nil
}

// identity holds what makes two objects the same. In hosted mode, one for each side may have the same name.
type identity struct {
	schema.GroupKind
	namespace, name, side string
}

// identityOf returns the identity of an object.
func identityOf(u *unstructured.Unstructured, hosted bool) identity {
	id := identity{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName(), "managed"}
	if !hosted {
		return id
	}
	for _, stated := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
		if side, found := stated[names.AnnotationHostedLocation]; found {
			id.side = side
		}
	}
	return id
}

// finish checks objects and returns them as they are deployed. The error is an InvalidError that lists all problems.
func (a *author) finish(made []runtime.Object, hosted bool) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var problems []string
	first := map[identity]int{}
	for i, object := range made {
		list, err := a.convert(object)
		if err != nil {
			problems = append(problems, fmt.Sprintf("object %d: %v", i, err))
			continue
		}
		for _, u := range list {
			for _, problem := range problemsOf(u) {
				problems = append(problems, fmt.Sprintf("object %d (%s): %s", i, describe(u), problem))
			}
			id := identityOf(u, hosted)
			if earlier, taken := first[id]; taken && id.name != "" {
				problems = append(problems, fmt.Sprintf("object %d (%s): it is the same object as %d; remove one of the two", i,
					describe(u), earlier))
			} else {
				first[id] = i
			}
			if a.TrimCRDDescription {
				u = trimmed(u)
			}
			objects = append(objects, u)
		}
	}
	if len(problems) > 0 {
		return nil, &InvalidError{Message: strings.Join(problems, "; ")}
	}
	return objects, nil
}

// convert returns an object, or the objects of a list, without Go types.
func (a *author) convert(object runtime.Object) ([]*unstructured.Unstructured, error) {
	u, isUnstructured := object.(*unstructured.Unstructured)
	switch {
	case object == nil || (isUnstructured && u == nil):
		return nil, errors.New("it is nil")
	case !isUnstructured:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("encoding %T: %w", object, err)
		}
		u = &unstructured.Unstructured{Object: content}
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			kinds, _, err := a.scheme.ObjectKinds(object)
			if err != nil {
				return nil, fmt.Errorf("the apiVersion and kind of %T are not known: set its TypeMeta, or add the type to "+
					"Options.Scheme: %w", object, err)
			}
			u.SetGroupVersionKind(kinds[0])
		}
		if status, isMap := content["status"].(map[string]any); isMap && len(status) == 0 {
			delete(content, "status") // A Go type has one, even where the author stated none.
		}
	}
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	var all []*unstructured.Unstructured
	err := u.EachListItem(func(item runtime.Object) error {
		below, err := a.convert(item)
		all = append(all, below...)
		return err
	})
	return all, err
}

// problemsOf returns why an object cannot be deployed.
func problemsOf(u *unstructured.Unstructured) []string {
	var all []string
	for _, need := range []struct{ path, value string }{
		{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()},
	} {
		if need.value == "" {
			all = append(all, need.path+" is required")
		}
	}
	// The encoding of a character has at most six, so that most objects need not be encoded to be small enough.
	if textIn(u.Object)*6 <= MaxManifestBytes {
		return all
	}
	raw, err := json.Marshal(u.Object)
	switch {
	case err != nil:
		all = append(all, "it cannot be encoded: "+err.Error())
	case len(raw) > MaxManifestBytes:
		all = append(all, fmt.Sprintf("it has %d bytes, and %d are the limit: make it smaller or split it", len(raw),
			MaxManifestBytes))
	}
	return all
}

// textIn returns about how many characters an object has.
func textIn(value any) int {
	const mark = 4 // quotes, colon and comma
	sum := mark
	switch typed := value.(type) {
	case map[string]any:
		for key, item := range typed {
			sum += len(key) + textIn(item)
		}
	case []any:
		for _, item := range typed {
			sum += textIn(item)
		}
	case string:
		sum += len(typed)
	default:
		const number = 24
		sum += number
	}
	return sum
}

// describe returns kind, namespace and name of an object.
func describe(u *unstructured.Unstructured) string {
	return message.Object(cmp.Or(u.GetKind(), "no kind"), u.GetNamespace(), u.GetName())
}

// trimmed returns a CustomResourceDefinition without the descriptions in its schemas; any other object stays as it is.
func trimmed(u *unstructured.Unstructured) *unstructured.Unstructured {
	spec, isMap := u.Object["spec"].(map[string]any)
	definition := schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	if u.GroupVersionKind().GroupKind() != definition || !isMap {
		return u
	}
	versions, _ := spec["versions"].([]any)
	list := make([]any, 0, len(versions))
	for _, item := range versions {
		version, isMap := item.(map[string]any)
		validation, validates := version["schema"].(map[string]any)
		if isMap && validates {
			version, validation = maps.Clone(version), maps.Clone(validation)
			validation["openAPIV3Schema"] = withoutDescription(validation["openAPIV3Schema"])
			version["schema"] = validation
			item = version
		}
		list = append(list, item)
	}
	object := maps.Clone(u.Object)
	spec = maps.Clone(spec)
	spec["versions"], object["spec"] = list, spec
	return &unstructured.Unstructured{Object: object}
}

// withoutDescription returns a schema, or a list of schemas, without descriptions.
func withoutDescription(value any) any {
	if list, isList := value.([]any); isList {
		trimmed := make([]any, len(list))
		for i, item := range list {
			trimmed[i] = withoutDescription(item)
		}
		return trimmed
	}
	node, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	node = maps.Clone(node)
	delete(node, "description")
	for key, below := range node {
		switch key {
		case "properties", "patternProperties", "definitions", "dependencies":
			// The keys are names that the author of the definition chose; one may be "description".
			named, isMap := below.(map[string]any)
			if !isMap {
				continue
			}
			named = maps.Clone(named)
			for name, schema := range named {
				named[name] = withoutDescription(schema)
			}
			node[key] = named
		case "items", "additionalItems", "additionalProperties", "not", "allOf", "anyOf", "oneOf", "externalDocs":
			node[key] = withoutDescription(below)
		}
	}
	return node
}
