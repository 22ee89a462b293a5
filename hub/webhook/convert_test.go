package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spokelet/spokelet/hub/webhook"
)

const (
	alpha = "addon.open-cluster-management.io/v1alpha1"
	beta  = "addon.open-cluster-management.io/v1beta1"

	addOnAlpha = `{"apiVersion":"` + alpha + `","kind":"ManagedClusterAddOn",
		"metadata":{"name":"hello","namespace":"c1","uid":"u1","resourceVersion":"7"},
		"spec":{"installNamespace":"ns"},
		"status":{"kubeClientDriver":"csr","registrations":[{"signerName":"kubernetes.io/kube-apiserver-client",
			"subject":{"user":"u"}}],
			"configReferences":[{"group":"g","resource":"r","name":"n","lastObservedGeneration":9007199254740993,
				"desiredConfig":null}]}}`
	addOnBeta = `{"apiVersion":"` + beta + `","kind":"ManagedClusterAddOn",
		"metadata":{"name":"hello","namespace":"c1","uid":"u1","resourceVersion":"7",
			"annotations":{"addon.open-cluster-management.io/v1alpha1-install-namespace":"ns"}},
		"spec":{},
		"status":{"addOnMeta":{},"healthCheck":{},
			"registrations":[{"type":"kubeClient","kubeClient":{"driver":"csr","subject":{"user":"u"}}}],
			"configReferences":[{"group":"g","resource":"r","lastObservedGeneration":9007199254740993,
				"desiredConfig":{"name":"n","specHash":""}}]}}`
	managementAlpha = `{"apiVersion":"` + alpha + `","kind":"ClusterManagementAddOn","metadata":{"name":"hello"},
		"spec":{"supportedConfigs":[{"group":"g","resource":"r"}],"installStrategy":{"type":"Manual"}},
		"status":{"defaultconfigReferences":[{"group":"g","resource":"r","desiredConfig":{"name":"n","specHash":"h"}}]}}`
	managementBeta = `{"apiVersion":"` + beta + `","kind":"ClusterManagementAddOn","metadata":{"name":"hello"},
		"spec":{"addOnMeta":{},"defaultConfigs":[{"group":"g","resource":"r","name":"__reserved_no_default__"}],
			"installStrategy":{"type":"Manual"}},
		"status":{"defaultConfigReferences":[{"group":"g","resource":"r","desiredConfig":{"name":"n","specHash":"h"}}]}}`
)

func TestConvert(t *testing.T) {
	tests := map[string]struct {
		desired string
		objects []string
		want    []string
	}{
		"both kinds go to v1beta1, in order": {
			desired: beta,
			objects: []string{managementAlpha, addOnAlpha},
			want:    []string{managementBeta, addOnBeta},
		},
		"an object in the desired version stays as it is, even what we do not know": {
			desired: beta,
			objects: []string{strings.Replace(addOnBeta, `"spec":{}`, `"spec":{"new":1}`, 1)},
			want:    []string{strings.Replace(addOnBeta, `"spec":{}`, `"spec":{"new":1}`, 1)},
		},
		"a template keeps everything but its version, also what we do not know": {
			desired: beta,
			objects: []string{`{"apiVersion":"` + alpha + `","kind":"AddOnTemplate","spec":{"new":9007199254740993,"n":null}}`},
			want:    []string{`{"apiVersion":"` + beta + `","kind":"AddOnTemplate","spec":{"new":9007199254740993,"n":null}}`},
		},
		"no objects are no objects": {desired: alpha},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := webhook.Convert(review(test.desired, test.objects...))
			require.Equal(t, metav1.StatusSuccess, answer.Response.Result.Status, answer.Response.Result.Message)
			assert.Equal(t, "uid", string(answer.Response.UID))
			assert.Nil(t, answer.Request)
			require.Len(t, answer.Response.ConvertedObjects, len(test.want))
			for i := range test.want {
				assert.JSONEq(t, test.want[i], string(answer.Response.ConvertedObjects[i].Raw))
			}
		})
	}
}

func TestConvertBack(t *testing.T) {
	answer := webhook.Convert(review(alpha, addOnBeta, managementBeta))
	require.Equal(t, metav1.StatusSuccess, answer.Response.Result.Status, answer.Response.Result.Message)
	var addOn, management map[string]map[string]any
	sections(t, answer.Response.ConvertedObjects[0].Raw, &addOn)
	sections(t, answer.Response.ConvertedObjects[1].Raw, &management)
	assert.Equal(t, map[string]any{"installNamespace": "ns"}, addOn["spec"])
	assert.NotContains(t, addOn["metadata"], "annotations")
	assert.Equal(t, "csr", addOn["status"]["kubeClientDriver"])
	assert.Contains(t, management["status"], "defaultconfigReferences")
	assert.Equal(t, []any{map[string]any{"group": "g", "resource": "r"}},
		management["spec"]["supportedConfigs"])
}

// sections decodes the parts of an object that are objects themselves.
func sections(t *testing.T, raw []byte, into *map[string]map[string]any) {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(raw, &object))
	*into = map[string]map[string]any{}
	for key, value := range object {
		if section, ok := value.(map[string]any); ok {
			(*into)[key] = section
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	noObject := strings.Replace(addOnAlpha, `"spec":{"installNamespace":"ns"}`, `"spec":3`, 1)
	tests := map[string]struct {
		review *apiextensionsv1.ConversionReview
		want   []string
	}{
		"a review without a request": {
			review: &apiextensionsv1.ConversionReview{},
			want:   []string{"the review carries no request"},
		},
		"an unknown kind": {
			review: review(beta, `{"apiVersion":"`+alpha+`","kind":"AddOnDeploymentConfig","metadata":{"name":"t"}}`),
			want:   []string{"AddOnDeploymentConfig t", "no conversion from " + alpha + " AddOnDeploymentConfig to " + beta},
		},
		"an unknown desired version": {
			review: review("addon.open-cluster-management.io/v1", addOnAlpha),
			want:   []string{"ManagedClusterAddOn c1/hello", "to addon.open-cluster-management.io/v1 is known"},
		},
		"another group": {
			review: review(beta, `{"apiVersion":"example.com/v1alpha1","kind":"ManagedClusterAddOn"}`),
			want:   []string{"example.com/v1alpha1 ManagedClusterAddOn"},
		},
		"a part that is no object, as no definition allows": {
			review: review(beta, addOnAlpha, noObject),
			want:   []string{"1 of 2 objects", "object 1", "c1/hello", "its spec is no object"},
		},
		"a field in the wrong letter case": {
			review: review(beta, strings.Replace(managementAlpha, `"metadata"`, `"Metadata"`, 1)),
			want:   []string{`unknown field "Metadata"`},
		},
		"what is no JSON": {
			review: review(beta, `{`),
			want:   []string{"object 0 (unreadable)"},
		},
		"many bad objects are counted, not listed": {
			review: review(beta, strings.Split(strings.Repeat("{},", 30)+"{}", ",")...),
			want:   []string{"31 of 31 objects", "and 21 more"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := webhook.Convert(test.review)
			assert.Equal(t, metav1.StatusFailure, answer.Response.Result.Status)
			assert.Empty(t, answer.Response.ConvertedObjects)
			for _, part := range test.want {
				assert.Contains(t, answer.Response.Result.Message, part)
			}
		})
	}
}

// FuzzConvert checks that no object and no annotation breaks the conversion: an answer is whole or refused, typed
// clients can read it, it is not much larger than the object, the request is left alone, and what was converted can be
// converted back and forth again without a change.
func FuzzConvert(f *testing.F) {
	for _, object := range []string{
		addOnAlpha, addOnBeta, managementAlpha, managementBeta, fullAddOnAlpha, fullManagementAlpha, newerAddOn, `{}`, `null`, `[]`,
	} {
		for _, annotation := range []string{
			"", "{", `{"` + alpha + `":[{"path":["spec","configs"],"value":"boom"}]}`,
			`{"` + alpha + `":[{"path":["spec","later"],"value":{"a":[1]}},{"path":["spec","later"],"value":2}]}`,
			`{"` + beta + `":[{"path":["spec","configs","#0"],"value":null}],"v9":[{"path":["x"],"value":1}]}`,
		} {
			f.Add(object, annotation, true)
			f.Add(object, annotation, false)
		}
	}
	f.Fuzz(func(t *testing.T, object, annotation string, toBeta bool) {
		object = annotated(object, annotation)
		desired, other := alpha, beta
		if toBeta {
			desired, other = beta, alpha
		}
		first := review(desired, object)
		answer := webhook.Convert(first)
		require.Equal(t, review(desired, object), first)
		if answer.Response.Result.Status != metav1.StatusSuccess {
			require.NotEmpty(t, answer.Response.Result.Message)
			require.Empty(t, answer.Response.ConvertedObjects)
			return
		}
		require.Len(t, answer.Response.ConvertedObjects, 1)
		converted := string(answer.Response.ConvertedObjects[0].Raw)
		if converted == object {
			return // It was in the desired version already and was passed on unread.
		}
		decodesAs(t, desired, converted)
		require.LessOrEqual(t, len(converted), 8*len(object)+32<<10)
		// A first trip may leave out what the other version cannot say; from then on nothing changes any more.
		once := forthAndBack(t, converted, desired, other)
		twice := forthAndBack(t, once, desired, other)
		require.JSONEq(t, once, twice)
	})
}

// annotated returns an object with an annotation of carried fields, if it is an object.
func annotated(object, annotation string) string {
	var fields map[string]any
	if annotation == "" || json.Unmarshal([]byte(object), &fields) != nil {
		return object
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata["annotations"] = map[string]any{"addon.spokelet.io/carried-fields": annotation}
	raw, err := json.Marshal(fields)
	if err != nil {
		return object
	}
	return string(raw)
}

func forthAndBack(t *testing.T, object, version, other string) string {
	t.Helper()
	for _, desired := range []string{other, version} {
		answer := webhook.Convert(review(desired, object))
		require.Equal(t, metav1.StatusSuccess, answer.Response.Result.Status, answer.Response.Result.Message)
		object = string(answer.Response.ConvertedObjects[0].Raw)
	}
	return object
}

func review(desired string, objects ...string) *apiextensionsv1.ConversionReview {
	request := &apiextensionsv1.ConversionRequest{UID: "uid", DesiredAPIVersion: desired}
	for _, object := range objects {
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	return &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request:  request,
	}
}
