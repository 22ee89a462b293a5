package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is the content of an object. One that is stored is never changed.
type object map[string]any

// meta returns the metadata as an accessor, which writes to the object.
func (o object) meta() *unstructured.Unstructured { return &unstructured.Unstructured{Object: o} }

// copied returns a copy that may be changed.
func (o object) copied() object { return runtime.DeepCopyJSON(o) }

// without returns a shallow copy without some fields.
func (o object) without(fields ...string) object {
	left := maps.Clone(o)
	for _, f := range fields {
		delete(left, f)
	}
	return left
}

// sameAs reports whether two objects differ in nothing but who manages which field and the version.
func (o object) sameAs(other object) bool {
	return bytes.Equal(encode(o.compared()), encode(other.compared()))
}

// compared is the object without what does not count as a change.
func (o object) compared() object {
	rest := maps.Clone(o)
	if m, ok := o["metadata"].(map[string]any); ok {
		rest["metadata"] = object(m).without("managedFields", "resourceVersion")
	}
	return rest
}

// stored is an object in one version, with its encodings.
type stored struct {
	object
	// key is the namespace and name, version the resource version, labels what selectors look at.
	key     key
	version uint64
	labels  labels.Set
	// views are what it is in other versions, and encodings what clients got, both as far as a user asked.
	views     map[string]object
	encodings map[form][]byte
}

// key names an object within its resource.
type key struct{ namespace, name string }

// compare orders keys as an API server lists them.
func (k key) compare(other key) int {
	mine, others := k.namespace+"/"+k.name, other.namespace+"/"+other.name
	switch {
	case mine < others:
		return -1
	case mine > others:
		return 1
	}
	return 0
}

// store makes an object a stored one; it must not be changed after that.
func store(o object, version uint64) *stored {
	o.setMeta("resourceVersion", fmt.Sprint(version))
	m := o.meta()
	return &stored{
		object: o, key: key{m.GetNamespace(), m.GetName()}, version: version, labels: m.GetLabels(),
		views: map[string]object{}, encodings: map[form][]byte{},
	}
}

// form is how a client wants objects: in a version, and perhaps their metadata alone.
type form struct {
	version string
	partial bool
}

// encode writes JSON; what is stored was read from JSON, so it can be.
func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding what was decoded: %v", err))
	}
	return data
}

// instant writes a time as the API does.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
