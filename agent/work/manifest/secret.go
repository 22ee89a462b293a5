package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsSecret reports whether an object is a Secret of any version, whose values no error may quote. The apiVersion "/v1"
// means the same as "v1".
func IsSecret(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && version.Group == "" && object["kind"] == "Secret"
}

// SecretTexts returns the values of a field of a Secret, which is data or stringData. A key without a value has an
// empty one, as for the API server. An error names the key and never the value, for errors end in statuses, Events and
// logs.
func SecretTexts(secret map[string]any, field string) (map[string]any, error) {
	if secret[field] == nil {
		return nil, nil // absence is an answer here
	}
	values, isMap := secret[field].(map[string]any)
	if !isMap {
		return nil, Failed(fmt.Sprintf("the field %s of the Secret is no map of keys and texts", field))
	}
	texts := make(map[string]any, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key].(type) {
		case nil:
			texts[key] = ""
		case string:
			texts[key] = value
		default:
			return nil, Failed(fmt.Sprintf("the value of the key %q in %s of the Secret is no text; put it in quotes",
				key, field))
		}
	}
	return texts, nil
}

// checkSecret returns why the API server would refuse the fields of a Secret for their types; nil when it would not.
// The errors of the API server quote the values.
func checkSecret(raw []byte) error {
	object, err := decode(raw)
	if err != nil || !IsSecret(object.Object) {
		return err
	}
	for _, field := range []string{"data", "stringData"} {
		if _, err := SecretTexts(object.Object, field); err != nil {
			return err
		}
	}
	if kind := object.Object["type"]; kind != nil {
		if _, isText := kind.(string); !isText {
			return Failed("the type of the Secret is no text; put it in quotes")
		}
	}
	if immutable := object.Object["immutable"]; immutable != nil {
		if _, isBool := immutable.(bool); !isBool {
			return Failed("the field immutable of the Secret is neither true nor false")
		}
	}
	return nil
}
