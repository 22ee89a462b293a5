package change

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// masked stands for a value of a Secret, and maskedOther for another one.
const masked, maskedOther = "(masked)", "(masked, another value)"

// masks hides the values of Secrets, also of those within another object, such that it is still seen which of them
// differ.
func masks(before, after *unstructured.Unstructured) (from, to *unstructured.Unstructured) {
	from, to = before.DeepCopy(), after.DeepCopy()
	old := map[string]any{}
	mask(from.Object, "", func(path string, value any) string {
		old[path] = value
		return masked
	})
	mask(to.Object, "", func(path string, value any) string {
		if was, had := old[path]; had && !reflect.DeepEqual(was, value) {
			return maskedOther
		}
		return masked
	})
	return from, to
}

// hide returns what stands for a value at a path.
type hide func(path string, value any) string

// inText finds a Secret as YAML or JSON in a text, also as a text of JSON in JSON.
var inText = regexp.MustCompile(`kind[\\"']*\s*:[\\"'\s]*Secret(List)?\b`)

// mask hides the values of Secrets in a value, and returns it.
func mask(value any, path string, by hide) any {
	switch of := value.(type) {
	case map[string]any:
		kind, _ := of["kind"].(string)
		for _, key := range slices.Sorted(maps.Keys(of)) {
			of[key] = mask(of[key], path+"."+key, by)
		}
		switch items, _ := of["items"].([]any); kind {
		case "Secret":
			maskSecret(of, path, by)
		case "SecretList": // Its items have no kind.
			for i, item := range items {
				if secret, is := item.(map[string]any); is {
					maskSecret(secret, path+".items."+entry(secret, i), by)
				}
			}
		}
	case []any:
		for i := range of {
			of[i] = mask(of[i], path+"."+entry(of[i], i), by)
		}
	case string:
		if inText.MatchString(of) {
			return by(path, of)
		}
	}
	return value
}

// entry names an entry of a list: an object by its name, because others may come before it.
func entry(value any, at int) string {
	of, _ := value.(map[string]any)
	metadata, _ := of["metadata"].(map[string]any)
	if name, is := metadata["name"].(string); is {
		return fmt.Sprintf("%v %v/%s", of["kind"], metadata["namespace"], name)
	}
	return strconv.Itoa(at)
}

// maskSecret hides the values of a Secret. A program may have kept them in an annotation, too.
func maskSecret(secret map[string]any, path string, by hide) {
	metadata, _ := secret["metadata"].(map[string]any)
	for field, of := range map[string]map[string]any{"data": secret, "stringData": secret, "annotations": metadata} {
		at := path + "." + field
		switch values := of[field].(type) {
		case nil:
		case map[string]any:
			for key, value := range values {
				values[key] = by(at+"."+key, value)
			}
		default: // The API server would refuse it.
			of[field] = by(at, values)
		}
	}
}
