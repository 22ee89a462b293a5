package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// refusalsShown is the number of objects that a refusal lists; the API server would cut a longer message. After
// maxRefused objects, no further ones are read.
const refusalsShown, maxRefused = 10, 1000

// errEnough ends a review that is refused anyway.
var errEnough = errors.New("too many objects cannot be converted")

// Convert answers a review: with all objects in the desired version, in the same order, or with a failure that names
// the objects that cannot be converted. It does not change the review.
func Convert(review *apiextensionsv1.ConversionReview) *apiextensionsv1.ConversionReview {
	answer := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind:       "ConversionReview",
		},
		Response: &apiextensionsv1.ConversionResponse{Result: metav1.Status{Status: metav1.StatusSuccess}},
	}
	if review == nil || review.Request == nil {
		answer.Response.Result = refusal(errors.New("the review carries no request"))
		return answer
	}
	answer.Response.UID = review.Request.UID
	b := batch{desired: review.Request.DesiredAPIVersion}
	for _, object := range review.Request.Objects {
		b.add(object.Raw)
	}
	if err := b.refusal(); err != nil {
		answer.Response.Result = refusal(err)
		return answer
	}
	for _, raw := range b.converted {
		answer.Response.ConvertedObjects = append(answer.Response.ConvertedObjects, runtime.RawExtension{Raw: raw})
	}
	return answer
}

// batch converts the objects of one review, one by one.
type batch struct {
	desired   string
	converted [][]byte
	// refused are the first objects that cannot be converted, with the causes; failed is the number of all of them, total
	// that of all objects.
	refused       []string
	failed, total int
	// dropped is the number of fields that were lost, because an annotation cannot carry them.
	dropped int
	// size is that of the answer so far, and limit, unless 0, its limit, in bytes.
	size, limit int
}

// add converts the next object.
func (b *batch) add(raw []byte) {
	out, dropped, err := convertObject(raw, b.desired)
	b.dropped += dropped
	b.size += len(out)
	if err == nil && b.limit > 0 && b.size > b.limit {
		err = fmt.Errorf("with it, the answer has more than %d bytes", b.limit)
	}
	switch {
	case err == nil:
		b.converted = append(b.converted, out)
	case b.failed < refusalsShown:
		b.refused = append(b.refused, fmt.Sprintf("object %d (%s): %v", b.total, describe(raw), err))
	}
	if err != nil {
		b.failed++
		b.converted = nil
	}
	b.total++
}

// refusal names the objects that cannot be converted; nil if there are none.
func (b *batch) refusal() error {
	if b.failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d objects cannot be converted to %s: %s", b.failed, b.total, b.desired,
		message.ListOf(b.refused, b.failed, "; "))
}

// convertObject converts one object to the desired apiVersion; an object of that version is returned unchanged. It
// returns the number of fields that are lost, because an annotation cannot carry them.
func convertObject(raw []byte, desired string) ([]byte, int, error) {
	if _, err := weigh(raw); err != nil {
		return nil, 0, err
	}
	var head metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return nil, 0, fmt.Errorf("decoding its apiVersion and kind: %w", err)
	}
	alpha, beta := addonv1alpha1.GroupVersion.String(), addonv1beta1.GroupVersion.String()
	type step struct{ kind, from, to string }
	switch (step{head.Kind, head.APIVersion, desired}) {
	case step{"ManagedClusterAddOn", alpha, beta}:
		return rewrite(raw, addonapi.AddOnToBeta)
	case step{"ManagedClusterAddOn", beta, alpha}:
		return rewrite(raw, addonapi.AddOnToAlpha)
	case step{"ClusterManagementAddOn", alpha, beta}:
		return rewrite(raw, addonapi.ClusterManagementAddOnToBeta)
	case step{"ClusterManagementAddOn", beta, alpha}:
		return rewrite(raw, addonapi.ClusterManagementAddOnToAlpha)
	case step{"AddOnTemplate", alpha, beta}, step{"AddOnTemplate", beta, alpha}:
		out, err := relabel(raw, desired)
		return out, 0, err
	case step{"ManagedClusterAddOn", alpha, alpha}, step{"ManagedClusterAddOn", beta, beta},
		step{"ClusterManagementAddOn", alpha, alpha}, step{"ClusterManagementAddOn", beta, beta},
		step{"AddOnTemplate", alpha, alpha}, step{"AddOnTemplate", beta, beta}:
		return raw, 0, nil
	}
	return nil, 0, fmt.Errorf("no conversion from %s %s to %s is known; known are ManagedClusterAddOn, "+
		"ClusterManagementAddOn and AddOnTemplate in %s and %s", head.APIVersion, head.Kind, desired, alpha, beta)
}

// relabel sets the apiVersion of an object whose fields are the same in both versions.
func relabel(raw []byte, desired string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	version, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encoding its version: %w", err)
	}
	object["apiVersion"] = version
	out, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return out, nil
}

// rewrite decodes, converts and encodes an object. A field that its type does not have, or has with another type, loses
// nothing: one of the status or the metadata keeps its place, any other is carried in an annotation until the object is
// converted back. Names of fields are case-sensitive, as in the API server, because some differ only in case between
// the two versions. What is answered can be decoded into the Go type of the other version.
func rewrite[A, B any](raw []byte, convert func(*A) *B) ([]byte, int, error) {
	in := new(A)
	var rest []field
	unknown, err := kjson.UnmarshalStrict(raw, in)
	if err != nil || len(unknown) > 0 {
		if in, rest, err = separate[A](raw); err != nil {
			return nil, 0, err
		}
	}
	out := convert(in)
	dropped := trimAnnotations(out, in)
	if len(rest) == 0 {
		if raw, simple := encode(out); simple {
			return raw, dropped, nil
		}
	}
	fields, err := known(out)
	if err != nil {
		return nil, 0, err
	}
	fields, lost, err := exchange(fields, reflect.TypeFor[B](), in, rest)
	if err != nil {
		return nil, 0, err
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, 0, fmt.Errorf("encoding the result: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, new(B)); err != nil {
		return nil, 0, fmt.Errorf("the result is no object of this version: %w", err)
	}
	return encoded, dropped + lost, nil
}

// trimAnnotations removes annotations that the conversion added to an object which has no room for them, and returns
// how many.
func trimAnnotations(converted, before any) int {
	out, is := converted.(metav1.Object)
	in, was := before.(metav1.Object)
	if !is || !was {
		return 0
	}
	annotations, size := out.GetAnnotations(), 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	dropped := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if _, had := in.GetAnnotations()[key]; size > maxAnnotations && !had {
			size -= len(key) + len(annotations[key])
			delete(annotations, key)
			dropped++
		}
	}
	return dropped
}

// encode encodes a converted object that carries nothing and has no nulls, which is nearly every one. It returns false
// for any other.
func encode(object any) ([]byte, bool) {
	if o, ok := object.(metav1.Object); !ok || o.GetAnnotations()[names.AnnotationCarried] != "" {
		return nil, false
	}
	raw, err := json.Marshal(object)
	return raw, err == nil && !bytes.Contains(raw, []byte(":null"))
}

// known returns the fields of a typed object.
func known(object any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("taking the result apart: %w", err)
	}
	dropNulls(fields)
	return fields, nil
}

// exchange restores the carried fields of the converted object's version, whose type is t, and adds the fields that in,
// the object before the conversion, does not have. It returns the object and the number of fields that are lost.
func exchange(object map[string]any, t reflect.Type, in any, rest []field) (map[string]any, int, error) {
	p := takeCarried(object)
	before, err := known(in)
	if err != nil {
		return nil, 0, err
	}
	from, _ := before[inAPIVersion].(string)
	version, _ := object[inAPIVersion].(string)
	l := &loose{object: object, mover: newMover(object, in), packer: packer{known: before, lists: lists{}}}
	if err := l.add(rest); err != nil {
		return nil, 0, err
	}
	p[from] = newer(l.packed, p[from])
	p[version] = unpack(object, t, p[version])
	lost := l.dropped
	if l.moved {
		s := splitter{schema: schema{}, keep: true}
		if fits, ok := s.split(object, t, nil); ok {
			object, _ = fits.(map[string]any)
		}
		lost += len(s.rest)
	}
	dropped, err := putCarried(object, p, from)
	return object, lost + dropped, err
}

// loose sorts the fields that a type does not have.
type loose struct {
	object map[string]any
	mover  *mover
	packer packer
	packed []carried
	// dropped is the number of fields beyond what is carried; moved reports whether the object got any field.
	dropped int
	moved   bool
}

// add adds fields to the converted object or to the carried ones.
func (l *loose) add(rest []field) error {
	for _, f := range rest {
		if part, _ := f.path[0].(string); part == inStatus || part == inMetadata {
			keep(l.object, l.mover.moved(f.path), f.value)
			l.moved = true
			continue
		}
		if len(l.packed) == maxCarried {
			l.dropped++
			continue
		}
		one, err := l.packer.pack(f)
		if err != nil {
			return err
		}
		l.packed = append(l.packed, one)
	}
	return nil
}

// newer returns the fields that an object lost just now, and those that wait for a place with another path.
func newer(now, waiting []carried) []carried {
	paths := map[string]bool{}
	key := func(one carried) string { return strings.Join(one.Path, "\x00") }
	for _, one := range now {
		paths[key(one)] = true
	}
	for _, one := range waiting {
		if !paths[key(one)] {
			now = append(now, one)
		}
	}
	return now
}

// dropNulls removes the nulls of pointers without a value, which the schema does not allow.
func dropNulls(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for key, field := range typed {
			if field == nil {
				delete(typed, key)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, item := range typed {
			dropNulls(item)
		}
	}
}

// describe names an object in a refusal, as far as it can be decoded.
func describe(raw []byte) string {
	var head metav1.PartialObjectMetadata
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return "unreadable"
	}
	return message.Object(head.Kind, head.Namespace, head.Name)
}

func refusal(err error) metav1.Status {
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonBadRequest,
		Message: err.Error(),
	}
}
