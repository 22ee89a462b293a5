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

// TestAnAnnotationReachesNothingButTheSpec plays somebody who may write add-ons, but not their status.
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
