package helm

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/names"
)

// hookAnnotation lists the events at which Helm creates an object.
const hookAnnotation = "helm.sh/hook"

// installs returns the events of an installation.
func installs() []string { return []string{"pre-install", "post-install", "crd-install"} }

// tests returns the events of helm test.
func tests() []string { return []string{"test", "test-success", "test-failure"} }

// preDelete is the event before a release is deleted.
const preDelete = "pre-delete"

// interpret returns an object as it is deployed, by the events of Helm that it is for; nil for one that is not.
func interpret(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	annotated, isHook := object.GetAnnotations()[hookAnnotation]
	if !isHook {
		return object, nil
	}
	var events []string
	for event := range strings.SplitSeq(annotated, ",") {
		events = append(events, strings.ToLower(strings.TrimSpace(event)))
	}
	isFor := func(some []string) bool {
		return slices.ContainsFunc(events, func(event string) bool { return slices.Contains(some, event) })
	}
	runs := object.GetKind() == "Job" || object.GetKind() == "Pod"
	switch {
	case isFor(installs()):
		if runs && slices.Contains(events, preDelete) {
			return nil, fmt.Errorf("%s %s has %s %q: make it two objects, because an add-on runs an object either when it is "+
				"installed or before it is deleted", object.GetKind(), object.GetName(), hookAnnotation, annotated)
		}
		return object, nil
	case slices.Contains(events, preDelete):
		if runs {
			annotations := object.GetAnnotations()
			annotations[names.AnnotationPreDelete] = ""
			object.SetAnnotations(annotations)
		}
		return object, nil
	case isFor(tests()):
		return nil, nil
	}
	return nil, fmt.Errorf("%s %s has %s %q, and nothing would run it then: an add-on has the hooks pre-install, "+
		"post-install and %s", object.GetKind(), object.GetName(), hookAnnotation, annotated, preDelete)
}
