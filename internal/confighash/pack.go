package confighash

import (
	stdjson "encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/spokelet/spokelet/internal/kept"
)

// fieldPacked has the content of a packed config. No config on an API server has a field of that name.
const fieldPacked = "packed"

// Pack is a transformation of a cache: it keeps the content of a config of one of our kinds as its canonical JSON, and
// drops its status. Decoded, many small values take twenty times their bytes, and most configs of a hub are not used
// by any cluster at the moment. Reconcilers read a packed config by SpecHash and Unpack. Objects of all other kinds
// stay as they are.
func Pack(in any) (any, error) {
	u, is := in.(*unstructured.Unstructured)
	if !is || !ours(u) {
		return in, nil
	}
	if _, already := packed(u); already {
		return u, nil
	}
	return pack(u), nil
}

// pack returns a config with its content as JSON. What cannot be encoded stays as it is, and hashing it fails.
func pack(u *unstructured.Unstructured) *unstructured.Unstructured {
	raw, err := Content(u)
	if err != nil {
		return u
	}
	object := map[string]any{fieldPacked: string(raw)}
	for _, key := range about() {
		if value, has := u.Object[key]; has {
			object[key] = value
		}
	}
	return &unstructured.Unstructured{Object: object}
}

// PackJSON reads a config from its JSON as Pack leaves it. Its content is not decoded.
func PackJSON(raw []byte) (*unstructured.Unstructured, error) {
	fields := map[string]stdjson.RawMessage{}
	if err := stdjson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("decoding a configuration: %w", err)
	}
	object := map[string]any{}
	for _, key := range about() {
		value, has := fields[key]
		delete(fields, key)
		if !has {
			continue
		}
		var decoded any
		if err := json.Unmarshal(value, &decoded); err != nil {
			return nil, fmt.Errorf("decoding %s of a configuration: %w", key, err)
		}
		object[key] = decoded
	}
	delete(fields, "status")
	content, err := stdjson.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding a configuration: %w", err)
	}
	object[fieldPacked] = string(content)
	u := &unstructured.Unstructured{Object: object}
	if !ours(u) {
		return nil, fmt.Errorf("a configuration of kind %q in %q cannot be packed", u.GetKind(), u.GetAPIVersion())
	}
	return u, nil
}

// Encode returns the JSON of a config, packed or not.
func Encode(u *unstructured.Unstructured) ([]byte, error) {
	object := u.Object
	text, is := packed(u)
	if is {
		object = map[string]any{}
		for _, key := range about() {
			if value, has := u.Object[key]; has {
				object[key] = value
			}
		}
	}
	raw, err := stdjson.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	if !is || text == "{}" {
		return raw, nil
	}
	// It has its apiVersion and kind at least, else it would be of none of our kinds.
	return append(append(raw[:len(raw)-1], ','), text[1:]...), nil
}

// about are the fields that are not packed.
func about() []string { return []string{"apiVersion", "kind", "metadata"} }

// Size is how many bytes the content of a config has, packed or not, without those of its metadata.
func Size(u *unstructured.Unstructured) int {
	if text, is := packed(u); is {
		return len(text)
	}
	return kept.Weigh(contentOf(u))
}

// Weigh estimates how many bytes the content of a config takes when it is decoded.
func Weigh(u *unstructured.Unstructured) int {
	if text, is := packed(u); is {
		return kept.WeighJSON(text)
	}
	return kept.Weigh(contentOf(u))
}

// Unpack returns a config with its content. One that is not packed is returned as it is; a packed one is not changed.
func Unpack(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, is := packed(u)
	if !is {
		return u, nil
	}
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, fmt.Errorf("decoding %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	for key, value := range u.Object {
		if key != fieldPacked {
			object[key] = value
		}
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// packed returns the content of a config that Pack made.
func packed(u *unstructured.Unstructured) (string, bool) {
	text, is := u.Object[fieldPacked].(string)
	return text, is && ours(u)
}

// ours reports whether an object is of a kind that every hub knows.
func ours(u *unstructured.Unstructured) bool {
	for _, resource := range Resources() {
		if kind, known := Kind(resource); known && kind.GroupKind() == u.GroupVersionKind().GroupKind() {
			return true
		}
	}
	return false
}
