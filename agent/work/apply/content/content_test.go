package content

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object parses YAML as the API server would give it back.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

func TestContains(t *testing.T) {
	live := map[string]any{"a": int64(1), "m": map[string]any{"x": "1", "y": "2"}, "l": []any{
		map[string]any{"n": "1", "default": true},
	}}
	for name, c := range map[string]struct {
		wanted map[string]any
		want   bool
	}{
		"a part":                    {map[string]any{"m": map[string]any{"x": "1"}}, true},
		"a part of a list element":  {map[string]any{"l": []any{map[string]any{"n": "1"}}}, true},
		"null means nothing":        {map[string]any{"z": nil}, true},
		"empty means nothing":       {map[string]any{"z": map[string]any{}, "q": []any{}}, true},
		"another value":             {map[string]any{"a": int64(2)}, false},
		"a key more":                {map[string]any{"m": map[string]any{"z": "1"}}, false},
		"a shorter list":            {map[string]any{"l": []any{}}, false},
		"another shape":             {map[string]any{"m": []any{"x"}}, false},
		"a map instead of a scalar": {map[string]any{"a": map[string]any{"x": "1"}}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Contains(live, c.wanted)) })
	}
}

func TestForeignContent(t *testing.T) {
	entry := func(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	ours := entry("work-agent", "Update", "", `{"f:metadata":{},"f:spec":{}}`)
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nobody else":                  {[]metav1.ManagedFieldsEntry{ours}, false},
		"a status of somebody else":    {[]metav1.ManagedFieldsEntry{ours, entry("kcm", "Update", "status", `{"f:spec":{}}`)}, false},
		"metadata of somebody else":    {[]metav1.ManagedFieldsEntry{ours, entry("kcm", "Update", "", `{"f:metadata":{}}`)}, false},
		"content of somebody else":     {[]metav1.ManagedFieldsEntry{ours, entry("kubectl", "Update", "", `{"f:spec":{}}`)}, true},
		"scaled by somebody else":      {[]metav1.ManagedFieldsEntry{ours, entry("hpa", "Update", "scale", `{"f:spec":{}}`)}, false},
		"our own earlier server apply": {[]metav1.ManagedFieldsEntry{entry("work-agent", "Apply", "", `{"f:spec":{}}`)}, true},
		"no managed fields at all":     {nil, true},
		"fields that cannot be read":   {[]metav1.ManagedFieldsEntry{entry("x", "Update", "", `[`)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, Foreign(&metav1.ObjectMeta{ManagedFields: c.entries}))
		})
	}
}

func TestSameQuantity(t *testing.T) {
	for name, c := range map[string]struct {
		a, b any
		want bool
	}{
		"the same text":        {"x", "x", true},
		"the same amount":      {"1000m", "1", true},
		"a number and a text":  {int64(1), "1000m", true},
		"another amount":       {"1", "2", false},
		"text":                 {"x", "y", false},
		"a text and a boolean": {"true", true, false},
		"nothing and zero":     {nil, "0", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, sameQuantity(c.a, c.b)) })
	}
	live := map[string]any{"cpu": "1"}
	assert.True(t, Resembles(live, map[string]any{"cpu": "1000m"}))
	assert.False(t, Contains(live, map[string]any{"cpu": "1000m"}))
}
