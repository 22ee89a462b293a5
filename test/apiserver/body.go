package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// wire decodes what clients of what is built in send.
var wire = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// decoded reads the object of a request.
func (r *request) decoded() (object, error) {
	o, err := r.decode(r.body)
	if err != nil {
		return nil, err
	}
	kind := r.resource.gvk()
	if have := o.meta().GroupVersionKind(); have != kind && r.Subresource == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) is not %s", have, kind))
	}
	if !r.resource.Namespaced {
		o.setMeta("namespace", nil)
	}
	return r.resource.normal(o)
}

// normal returns an object as an API server reads it: what is built in without unknown fields, and all with metadata
// without empty ones.
func (r *Resource) normal(o object) (object, error) {
	if r.definition == nil {
		typed, err := scheme.Scheme.New(r.gvk())
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o, typed)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		whole["apiVersion"], whole["kind"] = r.GroupVersion().String(), r.Kind
		object(whole).tidy()
		return whole, nil
	}
	var meta struct {
		Meta metav1.ObjectMeta `json:"metadata"`
	}
	own := map[string]any{"metadata": o["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(own, &meta); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o["metadata"], o["apiVersion"] = known["metadata"], r.GroupVersion().String()
	o.tidy()
	return o, nil
}

// tidy drops a time that is not set.
func (o object) tidy() {
	if m, ok := o["metadata"].(map[string]any); ok && m["creationTimestamp"] == nil {
		delete(m, "creationTimestamp")
	}
}

// decode reads JSON or protobuf.
func (r *request) decode(body []byte) (object, error) {
	o := object{}
	if strings.Contains(r.http.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		typed, _, err := wire.Decode(body, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		raw, err := json.Marshal(typed)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		body = raw
	}
	if err := utiljson.Unmarshal(body, (*map[string]any)(&o)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

// patched applies the patch of a request to an object in its version.
func (r *request) patched(o object) (object, error) {
	before := encode(o)
	kind, _, _ := strings.Cut(r.http.Header.Get("Content-Type"), ";")
	var after []byte
	var err error
	switch types.PatchType(kind) {
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(r.body); err == nil {
			after, err = patch.Apply(before)
		}
		if err != nil {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
				Message: "the server rejected our request due to an error in our request",
			}}
		}
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, r.body)
	case types.StrategicMergePatchType:
		var typed runtime.Object
		if typed, err = scheme.Scheme.New(r.resource.gvk()); err == nil {
			after, err = strategicpatch.StrategicMergePatch(before, r.body, typed)
		}
	default:
		return nil, unsupported(kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o = object{}
	if err := utiljson.Unmarshal(after, (*map[string]any)(&o)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return r.resource.normal(o)
}

// patches reports whether the resource takes the kind of patch of a request.
func (r *request) patches() bool {
	kind, _, _ := strings.Cut(r.http.Header.Get("Content-Type"), ";")
	switch types.PatchType(kind) {
	case types.JSONPatchType, types.MergePatchType:
		return true
	case types.StrategicMergePatchType:
		return r.resource.definition == nil
	default: // applying is not served
		return false
	}
}

// unsupported is the error for a patch of another kind.
func unsupported(kind string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 415, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - %q", kind),
	}}
}
