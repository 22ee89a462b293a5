package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/webhook"
)

// converted converts one object.
func converted(t *testing.T, version, object string) string {
	t.Helper()
	answer := webhook.Convert(review(version, object))
	require.Equal(t, metav1.StatusSuccess, answer.Response.Result.Status, answer.Response.Result.Message)
	require.Len(t, answer.Response.ConvertedObjects, 1)
	return string(answer.Response.ConvertedObjects[0].Raw)
}

// newer returns an add-on with fields that this converter does not know, in its spec, in a list and in a list of a
// list.
const newerAddOn = `{"apiVersion":"` + alpha + `","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},
	"spec":{"later":{"n":9007199254740993,"f":1.5},"configs":[{"group":"g","resource":"r","name":"x"},
		{"group":"g","resource":"r","name":"y","later":[true]}]},
	"status":{"addOnMeta":{},"healthCheck":{},"addOnConfiguration":{"crdName":""}}}`

func specOf(t *testing.T, object string) string {
	t.Helper()
	var parts map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(object), &parts))
	return string(parts["spec"])
}

func TestFieldsOfNewerDefinitionsSurviveTheOtherVersion(t *testing.T) {
	there := converted(t, beta, newerAddOn)
	assert.NotContains(t, specOf(t, there), "later", "the other version may mean something else by that name")
	back := converted(t, alpha, there)
	assert.JSONEq(t, specOf(t, newerAddOn), specOf(t, back))
	assert.Contains(t, back, "9007199254740993")
	assert.NotContains(t, back, "carried-fields", "nothing is left of the way")

	t.Run("also where a client of the other version moves elements", func(t *testing.T) {
		moved := strings.Replace(strings.Replace(strings.Replace(there, `"name":"x"`, `"name":"z"`, 1),
			`"name":"y"`, `"name":"x"`, 1), `"name":"z"`, `"name":"y"`, 1)
		assert.JSONEq(t, `{"later":{"n":9007199254740993,"f":1.5},"configs":[
			{"group":"g","resource":"r","name":"y","later":[true]},{"group":"g","resource":"r","name":"x"}]}`,
			specOf(t, converted(t, alpha, moved)))
	})
	t.Run("and a field whose place is gone waits for it", func(t *testing.T) {
		changed := strings.Replace(there, `"name":"y"`, `"name":"z"`, 1)
		waits := converted(t, alpha, changed)
		assert.NotContains(t, specOf(t, waits), "[true]")
		restored := strings.Replace(converted(t, beta, waits), `"name":"z"`, `"name":"y"`, 1)
		assert.Contains(t, specOf(t, converted(t, alpha, restored)), "[true]")
	})
	t.Run("both versions at once", func(t *testing.T) {
		both := strings.Replace(there, `"spec":{`, `"spec":{"newest":1,`, 1)
		stored := converted(t, alpha, both)
		assert.JSONEq(t, specOf(t, newerAddOn), specOf(t, stored))
		again := converted(t, beta, stored)
		assert.Contains(t, specOf(t, again), `"newest":1`)
		assert.JSONEq(t, specOf(t, newerAddOn), specOf(t, converted(t, alpha, again)))
	})
}

func TestAFieldOfTheStatusKeepsItsPlace(t *testing.T) {
	object := strings.Replace(newerAddOn, `"healthCheck":{}`, `"healthCheck":{"later":1}`, 1)
	assert.Contains(t, converted(t, beta, object), `"healthCheck":{"later":1}`)
}

// TestAnAnnotationReachesNothingButTheSpec plays a user who may write add-ons, but not their status.
func TestAnAnnotationReachesNothingButTheSpec(t *testing.T) {
	for _, path := range []string{`["status","namespace"]`, `["metadata","labels"]`, `["status"]`, `[]`, `["spec"]`} {
		forged, err := json.Marshal(`{"` + alpha + `":[{"path":` + path + `,"value":{"a":"b"}}]}`)
		require.NoError(t, err)
		object := `{"apiVersion":"` + beta + `","kind":"ManagedClusterAddOn","metadata":{"name":"a",
			"annotations":{"addon.spokelet.io/carried-fields":` + string(forged) + `}},"spec":{},"status":{"namespace":"mine"}}`
		got := converted(t, alpha, object)
		assert.Contains(t, got, `"namespace":"mine"`, path)
		assert.NotContains(t, got, `"labels"`, path)
	}
	known := `{"apiVersion":"` + beta + `","kind":"ManagedClusterAddOn","metadata":{"name":"a",
		"annotations":{"addon.spokelet.io/carried-fields":"no JSON"}},"spec":{},"status":{}}`
	assert.Contains(t, converted(t, alpha, known), "no JSON", "what cannot be read stays")
}

func TestOfNewerFieldsNothingIsLost(t *testing.T) {
	addOn := func(version, spec, status string) string {
		return `{"apiVersion":"` + version + `","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},` +
			`"spec":` + spec + `,"status":` + status + `}`
	}
	management := func(version, spec, status string) string {
		return `{"apiVersion":"` + version + `","kind":"ClusterManagementAddOn","metadata":{"name":"a"},"spec":` +
			spec + `,"status":` + status + `}`
	}
	const kube = `"signerName":"kubernetes.io/kube-apiserver-client"`
	for sentence, c := range map[string]struct {
		object, to string
		// other are parts of the object in the other version, without the carried fields.
		other []string
	}{
		"fields whose names look like paths": {
			object: addOn(alpha, `{"a.b":1,"c[0]":{"d":2},"#e":3}`, `{}`), to: beta, other: []string{`"spec":{}`},
		},
		"different fields of equal elements": {
			object: addOn(alpha, `{"configs":[{"resource":"r","name":"n"},{"resource":"r","name":"n","later":1},
				{"resource":"r","name":"n","later":2}]}`, `{}`), to: beta,
			other: []string{`"configs":[{"group":"","name":"n","resource":"r"},{"group":"","name":"n","resource":"r"},` +
				`{"group":"","name":"n","resource":"r"}]`},
		},
		"a part that is neither spec nor status": {
			object: strings.Replace(addOn(alpha, `{}`, `{}`), `"spec"`, `"scale":{"later":1},"spec"`, 1), to: beta,
		},
		"lists of the status": {
			object: addOn(alpha, `{}`, `{"configReferences":[{"resource":"r","name":"n","later":1,"desiredConfig":{"name":"n"}}],
				"conditions":[{"type":"t","later":2}]}`), to: beta,
			other: []string{`"later":1,"resource":"r"`, `"later":2`},
		},
		"a subject, which is a level deeper in the other version": {
			object: addOn(alpha, `{}`, `{"registrations":[{`+kube+`,"subject":{"user":"u","later":1},"latest":2},
				{"signerName":"a.com/b","subject":{"user":"u","later":3}}]}`), to: beta,
			other: []string{
				`"kubeClient":{"subject":{"later":1,"user":"u"}},"latest":2,"type":"kubeClient"`,
				`"customSigner":{"signerName":"a.com/b","subject":{"later":3,"user":"u"}}`,
			},
		},
		"a subject, which is a level higher in the other version, behind elements that do not exist there": {
			object: addOn(beta, `{}`, `{"registrations":[{"type":"kubeClient","kubeClient":{"driver":"csr",
				"subject":{"user":"u","later":1},"latest":2}}]}`), to: alpha,
			other: []string{`"kubeClient":{"latest":2},"signerName":"kubernetes.io/kube-apiserver-client",` +
				`"subject":{"later":1,"user":"u"}`},
		},
		"the list whose name differs in case": {
			object: management(alpha, `{"installStrategy":{}}`, `{"defaultconfigReferences":[{"resource":"r","later":1}]}`),
			to:     beta, other: []string{`"defaultConfigReferences":[{`, `"later":1,"resource":"r"`},
		},
		"the list whose name differs in case, in the other direction": {
			object: management(beta, `{"addOnMeta":{},"installStrategy":{}}`,
				`{"defaultConfigReferences":[{"resource":"r","later":1}]}`),
			to: alpha, other: []string{`"defaultconfigReferences":[{`, `"later":1,"resource":"r"`},
		},
		"a default, which is written in another way": {
			object: management(alpha, `{"installStrategy":{},"supportedConfigs":[{"resource":"r","later":1},
				{"resource":"s","defaultConfig":{"name":"n","later":2}}]}`, `{}`), to: beta,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			there := converted(t, c.to, c.object)
			for _, part := range c.other {
				assert.Contains(t, withoutCarried(t, there), part)
			}
			from := map[string]string{alpha: beta, beta: alpha}[c.to]
			back := converted(t, from, there)
			assert.JSONEq(t, emptied(t, c.object), emptied(t, back))
		})
	}
}

// withoutCarried returns an object without its annotations.
func withoutCarried(t *testing.T, object string) string {
	t.Helper()
	fields := fieldsOf(t, object)
	metadata, _ := fields["metadata"].(map[string]any)
	delete(metadata, "annotations")
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(raw)
}

func fieldsOf(t *testing.T, object string) map[string]any {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(object), &fields))
	return fields
}

// emptied returns an object without its fields that are empty, which the conversion may add.
func emptied(t *testing.T, object string) string {
	t.Helper()
	var empty func(value any) bool
	empty = func(value any) bool {
		switch typed := value.(type) {
		case map[string]any:
			for name, element := range typed {
				if empty(element) {
					delete(typed, name)
				}
			}
			return len(typed) == 0
		case []any:
			for _, element := range typed {
				empty(element)
			}
			return len(typed) == 0
		}
		return value == nil || value == "" || value == 0.0
	}
	fields := fieldsOf(t, object)
	empty(fields)
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(raw)
}

// TestAValueOfAnotherTypeWaitsInTheAnnotation: the API server validates no converted object, so nothing that our type
// knows is ever set from the annotation.
func TestAValueOfAnotherTypeWaitsInTheAnnotation(t *testing.T) {
	const head = `{"apiVersion":"` + alpha + `","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},`
	for sentence, c := range map[string]struct{ object, path, value string }{
		"a field": {head + `"spec":{"installNamespace":3}}`, `["spec","installNamespace"]`, `3`},
		"a list with an element of another type": {
			head + `"spec":{"configs":[{"resource":"r","name":"n","later":1},"text"]}}`, `["spec","configs"]`,
			`[{"later":1,"name":"n","resource":"r"},"text"]`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := c.object
			for range 3 {
				object = converted(t, beta, object)
				assert.Equal(t, `{}`, specOf(t, object))
				object = converted(t, alpha, object)
				assert.Equal(t, `{}`, specOf(t, object))
				carried := annotationsOf(t, object)["addon.spokelet.io/carried-fields"]
				assert.JSONEq(t, `{"`+alpha+`":[{"path":`+c.path+`,"value":`+c.value+`}]}`, carried)
			}
		})
	}
	t.Run("but one of the status is left out, as a controller writes it again", func(t *testing.T) {
		there := converted(t, beta, head+`"spec":{},"status":{"namespace":{"later":1},"addOnMeta":7}}`)
		assert.NotContains(t, there, "later")
		assert.Empty(t, annotationsOf(t, there))
	})
}

// annotationsOf returns the annotations of an object.
func annotationsOf(t *testing.T, object string) map[string]string {
	t.Helper()
	var meta metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal([]byte(object), &meta))
	return meta.Annotations
}

func TestWhatTheOtherVersionCannotExpressTakesItsFieldsWithIt(t *testing.T) {
	object := `{"apiVersion":"` + beta + `","kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c"},"spec":{},
		"status":{"registrations":[{"type":"customSigner","later":1},{"type":"customSigner",
			"customSigner":{"signerName":"a.com/b","subject":{"user":"u"}},"later":2}],
		"configReferences":[{"resource":"r","later":3},
			{"resource":"s","desiredConfig":{"name":"n","specHash":""},"later":4}]}}`
	status, _ := fieldsOf(t, converted(t, alpha, object))["status"].(map[string]any)
	assert.Equal(t, []any{map[string]any{
		"signerName": "a.com/b", "subject": map[string]any{"user": "u"}, "later": 2.0,
	}}, status["registrations"])
	references, _ := status["configReferences"].([]any)
	require.Len(t, references, 1)
	reference, _ := references[0].(map[string]any)
	assert.InDelta(t, 4, reference["later"], 0)
}
