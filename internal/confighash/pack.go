package confighash

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
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
	raw, err := canonical(u)
	if err != nil {
		return u, nil //nolint:nilerr // what cannot be encoded stays as it is, and whoever hashes it says so
	}
	object := map[string]any{fieldPacked: string(raw)}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		if value, has := u.Object[key]; has {
			object[key] = value
		}
	}
	return &unstructured.Unstructured{Object: object}, nil
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
