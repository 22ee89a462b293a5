package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// in returns the resource as it is served in a version.
func (r *Resource) in(version string) *Resource {
	if version == r.Version {
		return r
	}
	one := *r
	one.Version, one.definition = version, r.versions[version]
	return &one
}

// as returns an object in a version, as an API server reads it from its store: with the defaults of the version in
// which it is stored, and then converted. It must not be changed.
func (r *Resource) as(s *stored, version string) (object, error) {
	if s.meta().GroupVersionKind().Version == version && len(r.versions) < 2 {
		return s.object, nil
	}
	if o := s.views[version]; o != nil {
		return o, nil
	}
	o := s.copied()
	r.in(o.meta().GroupVersionKind().Version).complete(o)
	o, err := r.convert(o, version)
	if err != nil {
		return nil, err
	}
	s.views[version] = o
	return o, nil
}

// bytes is the encoding of an object in a form.
func (r *Resource) bytes(s *stored, f form) ([]byte, error) {
	if known := s.encodings[f]; known != nil {
		return known, nil
	}
	o, err := r.as(s, f.version)
	if err != nil {
		return nil, err
	}
	if f.partial {
		o = object{
			"kind": "PartialObjectMetadata", "apiVersion": metav1.SchemeGroupVersion.String(), "metadata": o["metadata"],
		}
	}
	s.encodings[f] = encode(o)
	return s.encodings[f], nil
}

// passed returns an object after it was read in a version and written again, which not all of it may survive.
func (r *Resource) passed(s *stored, version string) (object, error) {
	o, err := r.as(s, version)
	if err == nil {
		o, err = r.convert(o.copied(), r.Version)
	}
	return o, err
}

// convert converts an object to a version, without the fields that this one does not have. It may change the object.
func (r *Resource) convert(o object, version string) (object, error) {
	wanted := schema.GroupVersion{Group: r.Group, Version: version}
	if o.meta().GroupVersionKind().GroupVersion() == wanted {
		return o, nil
	}
	if !r.converted {
		o["apiVersion"] = wanted.String()
	} else {
		converted, err := r.review(o, wanted)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: %w",
				o.meta().GroupVersionKind(), err))
		}
		o = converted
	}
	if d := r.versions[version]; d != nil {
		pruning.Prune(map[string]any(o), d.schema, true)
	}
	return o, nil
}

// review lets the webhook convert an object.
func (r *Resource) review(o object, wanted schema.GroupVersion) (object, error) {
	if r.webhook == nil {
		return nil, errors.New("nobody serves it")
	}
	const uid types.UID = "00000000-0000-4000-9000-000000000000"
	body, err := json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request: &apiextensionsv1.ConversionRequest{
			UID: uid, DesiredAPIVersion: wanted.String(), Objects: []runtime.RawExtension{{Raw: encode(o)}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the review: %w", err)
	}
	answer, err := r.asked(body)
	if err != nil {
		return nil, err
	}
	switch response := answer.Response; {
	case response == nil || response.UID != uid:
		return nil, errors.New("it answered another request")
	case response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("it refused: %s", response.Result.Message)
	case len(response.ConvertedObjects) != 1:
		return nil, fmt.Errorf("it answered with %d objects for one", len(response.ConvertedObjects))
	}
	converted := object{}
	if err := utiljson.Unmarshal(answer.Response.ConvertedObjects[0].Raw, (*map[string]any)(&converted)); err != nil {
		return nil, fmt.Errorf("decoding what was converted: %w", err)
	}
	return converted, converted.keepIdentity(o, wanted)
}

// asked sends a review to the webhook, which is in this process and waits for nobody.
func (r *Resource) asked(review []byte) (*apiextensionsv1.ConversionReview, error) {
	request := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/convert"}, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(review)), ContentLength: int64(len(review)),
	}
	got := &written{header: http.Header{}, code: http.StatusOK}
	r.webhook.ServeHTTP(got, request)
	if got.code != http.StatusOK {
		return nil, fmt.Errorf("it answered %d: %s", got.code, got.body.String())
	}
	var answer apiextensionsv1.ConversionReview
	if err := json.Unmarshal(got.body.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("decoding the answer: %w", err)
	}
	return &answer, nil
}

// keepIdentity checks what a webhook made of an object, and takes all metadata but labels and annotations from before.
func (o object) keepIdentity(before object, wanted schema.GroupVersion) error {
	was, is := before.meta(), o.meta()
	if is.GroupVersionKind() != wanted.WithKind(was.GetKind()) || is.GetName() != was.GetName() ||
		is.GetNamespace() != was.GetNamespace() || is.GetUID() != was.GetUID() {
		return fmt.Errorf("it answered with another object: %s", encode(o))
	}
	labels, annotations := is.GetLabels(), is.GetAnnotations()
	wrong := append(metav1validation.ValidateLabels(labels, field.NewPath("metadata", "labels")),
		validation.ValidateAnnotations(annotations, field.NewPath("metadata", "annotations"))...)
	if len(wrong) > 0 {
		return fmt.Errorf("it answered with wrong metadata: %w", wrong.ToAggregate())
	}
	old, _ := before["metadata"].(map[string]any)
	own, _ := o["metadata"].(map[string]any)
	kept := maps.Clone(old)
	for _, name := range []string{"labels", "annotations"} {
		if delete(kept, name); own[name] != nil {
			kept[name] = own[name]
		}
	}
	o["metadata"] = kept
	return nil
}

// written takes up what a handler answers.
type written struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *written) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *written) WriteHeader(code int) { w.code = code }

// Write implements http.ResponseWriter.
func (w *written) Write(data []byte) (int, error) { return w.body.Write(data) }

// serves reports whether the resource is served in a version.
func (r *Resource) serves(version string) bool { return slices.Contains(r.Served, version) }
