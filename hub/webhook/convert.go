package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// refusalsShown is the number of objects that a refusal lists; the API server would cut a longer message.
const refusalsShown = 10

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
	converted, err := convertAll(review.Request)
	if err != nil {
		answer.Response.Result = refusal(err)
		return answer
	}
	answer.Response.ConvertedObjects = converted
	return answer
}

func convertAll(request *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	converted := make([]runtime.RawExtension, 0, len(request.Objects))
	var refused []string
	for i, object := range request.Objects {
		raw, err := convertObject(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			refused = append(refused, fmt.Sprintf("object %d (%s): %v", i, describe(object.Raw), err))
			continue
		}
		converted = append(converted, runtime.RawExtension{Raw: raw})
	}
	if len(refused) == 0 {
		return converted, nil
	}
	total := len(refused)
	if total > refusalsShown {
		refused = append(refused[:refusalsShown], fmt.Sprintf("and %d more", total-refusalsShown))
	}
	return nil, fmt.Errorf("%d of %d objects cannot be converted to %s: %s",
		total, len(request.Objects), request.DesiredAPIVersion, strings.Join(refused, "; "))
}

// convertObject converts one object to the desired apiVersion; an object of that version is returned unchanged.
func convertObject(raw []byte, desired string) ([]byte, error) {
	var head metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return nil, fmt.Errorf("decoding its apiVersion and kind: %w", err)
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
		return relabel(raw, desired)
	case step{"ManagedClusterAddOn", alpha, alpha}, step{"ManagedClusterAddOn", beta, beta},
		step{"ClusterManagementAddOn", alpha, alpha}, step{"ClusterManagementAddOn", beta, beta},
		step{"AddOnTemplate", alpha, alpha}, step{"AddOnTemplate", beta, beta}:
		return raw, nil
	}
	return nil, fmt.Errorf("no conversion from %s %s to %s is known; known are ManagedClusterAddOn, "+
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
// the two versions.
func rewrite[A, B any](raw []byte, convert func(*A) *B) ([]byte, error) {
	in := new(A)
	var rest []field
	unknown, err := kjson.UnmarshalStrict(raw, in)
	if err != nil || len(unknown) > 0 {
		if in, rest, err = separate[A](raw); err != nil {
			return nil, err
		}
	}
	out := convert(in)
	if len(rest) == 0 {
		if raw, simple := encode(out); simple {
			return raw, nil
		}
	}
	fields, err := known(out)
	if err != nil {
		return nil, err
	}
	if err := exchange(fields, in, rest); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return encoded, nil
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

// exchange restores the carried fields of the converted object's version, and adds the fields that in, the object
// before the conversion, does not have.
func exchange(object map[string]any, in any, rest []field) error {
	p := takeCarried(object)
	if err := pass(object, in, rest, p); err != nil {
		return err
	}
	version, _ := object[inAPIVersion].(string)
	p[version] = unpack(object, p[version])
	return putCarried(object, p)
}

// pass adds fields to the converted object or to the carried ones.
func pass(object map[string]any, in any, rest []field, p carriedFields) error {
	if len(rest) == 0 {
		return nil // nothing to carry is ordinary
	}
	before, err := known(in)
	if err != nil {
		return err
	}
	version, _ := before[inAPIVersion].(string)
	for _, f := range rest {
		if part, _ := f.path[0].(string); part == inStatus || part == inMetadata {
			keep(object, moved(object, in, f.path), f.value)
			continue
		}
		one, err := pack(before, f)
		if err != nil {
			return err
		}
		p[version] = append(p[version], one)
	}
	return nil
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
	name := head.Name
	if head.Namespace != "" {
		name = head.Namespace + "/" + name
	}
	return strings.TrimSpace(head.Kind + " " + name)
}

func refusal(err error) metav1.Status {
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonBadRequest,
		Message: err.Error(),
	}
}
