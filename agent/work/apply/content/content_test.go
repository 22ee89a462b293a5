package content

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheContentOfAnObject(t *testing.T) {
	got := Of(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x"}, "status": map[string]any{"s": "1"},
		"spec": map[string]any{"a": "1"}, "data": map[string]any{"b": "2"},
	}})
	assert.Equal(t, map[string]any{"spec": map[string]any{"a": "1"}, "data": map[string]any{"b": "2"}}, got)
}

func TestEmptyValues(t *testing.T) {
	for _, empty := range []any{nil, "", map[string]any{}, []any{}} {
		assert.True(t, Empty(empty), "%#v", empty)
	}
	for _, value := range []any{"x", false, int64(0), map[string]any{"a": nil}, []any{nil}} {
		assert.False(t, Empty(value), "%#v", value)
	}
	assert.True(t, SameValue(int64(1), int64(1)))
	assert.False(t, SameValue(int64(1), "1"))
	assert.True(t, Same(map[string]any{"a": []any{}}, map[string]any{"a": []any(nil)}))
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
		"a map instead of nothing":  {map[string]any{"z": map[string]any{"x": "1"}}, false},
		"a list instead of nothing": {map[string]any{"z": []any{"x"}}, false},
		"no map but a scalar":       {map[string]any{"a": map[string]any{}}, false},
		"no list but a scalar":      {map[string]any{"a": []any{}}, false},
		"a map instead of a scalar": {map[string]any{"a": map[string]any{"x": "1"}}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Contains(live, c.wanted)) })
	}
}

func TestForeignContent(t *testing.T) {
	entry := func(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(fields),
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
		"two long quantities":  {strings.Repeat("0", 39) + "1", "1000m", true},
		"a text that is longer than any quantity": {strings.Repeat("0", 40) + "1", "1000m", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, sameQuantity(c.a, c.b)) })
	}
	live := map[string]any{"cpu": "1"}
	assert.True(t, Resembles(live, map[string]any{"cpu": "1000m"}))
	assert.False(t, Contains(live, map[string]any{"cpu": "1000m"}))
}
