package webhook_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/webhook"
)

// FuzzCarriedFields puts a field of a newer definition into any place of an object, which must survive the other
// version, and an annotation that a user made up onto the same object, which must set nothing that typed clients see.
func FuzzCarriedFields(f *testing.F) {
	for place := range uint8(20) {
		f.Add(place, place%4, "", `{"a":[1,{"b":null}]}`, `{"`+alpha+`":[{"path":["spec","configs"],"value":"boom"}]}`)
	}
	f.Add(uint8(3), uint8(1), "~1", `"#"`, `{"`+beta+`":[{"path":["spec","configs","#0","name"],"value":"x"}]}`)
	f.Add(uint8(0), uint8(0), ".", `[[]]`, `{"`+alpha+`":[{"path":["status","namespace"],"value":"x"}],"v9":[{"path":["x"],"value":1}]}`)
	f.Add(uint8(9), uint8(2), "A", `1.5`, `{"`+beta+`":[{"path":["Spec"],"value":{}},{"path":["metadata","name"],"value":"x"}]}`)
	answer := webhook.Convert(review(beta, fullAddOnAlpha, fullManagementAlpha))
	require.Equal(f, metav1.StatusSuccess, answer.Response.Result.Status)
	objects := []string{
		fullAddOnAlpha, string(answer.Response.ConvertedObjects[0].Raw),
		fullManagementAlpha, string(answer.Response.ConvertedObjects[1].Raw),
	}
	f.Fuzz(func(t *testing.T, place, which uint8, name, value, annotation string) {
		object := objects[which%4]
		from, to := alpha, beta
		if which%2 == 1 {
			from, to = beta, alpha
		}
		checkForged(t, to, object, annotation)
		var later any
		if len(name)+len(value) > 2<<10 || json.Unmarshal([]byte(value), &later) != nil {
			return
		}
		newer := fieldsOf(t, object)
		var places []map[string]any
		collect(newer, &places)
		places[int(place)%len(places)]["later"+name] = later
		raw, err := json.Marshal(newer)
		require.NoError(t, err)
		back := converted(t, from, converted(t, to, string(raw)))
		require.JSONEq(t, emptied(t, string(raw)), emptied(t, back))
	})
}

// checkForged compares what typed clients see of an object with what they see if it has an annotation of carried
// fields.
func checkForged(t *testing.T, to, object, annotation string) {
	t.Helper()
	if annotation == "" {
		return
	}
	plain, forged := converted(t, to, annotated(object, "{}")), converted(t, to, annotated(object, annotation))
	require.Equal(t, fieldsOf(t, plain)["status"], fieldsOf(t, forged)["status"])
	require.Equal(t, typed(t, plain), typed(t, forged))
}

// typed decodes an object as typed clients do, and takes the annotation of carried fields off.
func typed(t *testing.T, object string) client.Object {
	t.Helper()
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal([]byte(object), &meta))
	into := map[string]client.Object{
		alpha + "/ManagedClusterAddOn":    &addonv1alpha1.ManagedClusterAddOn{},
		beta + "/ManagedClusterAddOn":     &addonv1beta1.ManagedClusterAddOn{},
		alpha + "/ClusterManagementAddOn": &addonv1alpha1.ClusterManagementAddOn{},
		beta + "/ClusterManagementAddOn":  &addonv1beta1.ClusterManagementAddOn{},
	}[meta.APIVersion+"/"+meta.Kind]
	require.NotNil(t, into)
	require.NoError(t, json.Unmarshal([]byte(object), into))
	annotations := into.GetAnnotations()
	delete(annotations, "addon.spokelet.io/carried-fields")
	if len(annotations) == 0 {
		annotations = nil
	}
	into.SetAnnotations(annotations)
	return into
}
