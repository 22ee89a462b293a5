package api

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/manifests"
)

// A field that the schema lacks would be dropped by the API server, and one that the type lacks would be lost by us.
func TestOurKindsHaveTheFieldsOfTheirDefinitions(t *testing.T) {
	kinds := map[string]reflect.Type{
		"AddOnPolicy": reflect.TypeFor[policies.AddOnPolicy](), "MaintenanceWindow": reflect.TypeFor[policies.MaintenanceWindow](),
	}
	for _, document := range manifests.CRDs() {
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(document, &definition))
		kind, ours := kinds[definition.Spec.Names.Kind]
		if !ours {
			continue
		}
		delete(kinds, definition.Spec.Names.Kind)
		require.Len(t, definition.Spec.Versions, 1)
		version := definition.Spec.Versions[0]
		assert.Equal(t, policies.GroupVersion().Group, definition.Spec.Group)
		assert.Equal(t, policies.GroupVersion().Version, version.Name)
		for _, part := range []string{"Spec", "Status"} {
			field, _ := kind.FieldByName(part)
			compare(t, kind.Name()+"."+strings.ToLower(part), field.Type, version.Schema.OpenAPIV3Schema.Properties[strings.ToLower(part)])
		}
	}
	assert.Empty(t, kinds)
}

// compare compares the fields of a type with the properties of a schema.
func compare(t *testing.T, path string, of reflect.Type, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[metav1.Time](), of == reflect.TypeFor[metav1.Duration]():
		assert.Equal(t, "string", schema.Type, path)
	case of.Kind() == reflect.Slice:
		require.NotNil(t, schema.Items, path)
		compare(t, path+"[]", of.Elem(), *schema.Items.Schema)
	case of.Kind() == reflect.Struct:
		left := map[string]bool{}
		for name := range schema.Properties {
			left[name] = true
		}
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property, has := schema.Properties[name]
			if assert.True(t, has, "%s.%s is not in the schema", path, name) {
				compare(t, path+"."+name, field.Type, property)
			}
			delete(left, name)
		}
		assert.Empty(t, left, "%s lacks fields of the schema", path)
	}
}

func TestCopiesOfOurKindsShareNoMemory(t *testing.T) {
	at := metav1.Unix(0, 0)
	policy := &policies.AddOnPolicy{
		Spec:   policies.AddOnPolicySpec{Paused: &policies.Pause{Reason: "a"}, Approved: []string{"a"}},
		Status: policies.AddOnPolicyStatus{Contents: []policies.Content{{Configurations: []string{"a"}}}},
	}
	window := &policies.MaintenanceWindow{Spec: policies.MaintenanceWindowSpec{AddOns: []string{"a"}, Until: &at}}
	window.Spec.ClusterSelector.MatchLabels, window.Status.NextStart = map[string]string{"a": "a"}, &metav1.Time{Time: at.Time}
	for _, original := range []runtime.Object{
		policy, window, &policies.AddOnPolicyList{Items: []policies.AddOnPolicy{*policy.DeepCopy()}},
		&policies.MaintenanceWindowList{Items: []policies.MaintenanceWindow{*window.DeepCopy()}},
	} {
		before, err := yaml.Marshal(original)
		require.NoError(t, err)
		changed := original.DeepCopyObject()
		assert.Equal(t, original, changed)
		scribble(reflect.ValueOf(changed))
		assert.NotEqual(t, original, changed)
		after, err := yaml.Marshal(original)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after))
	}
}

// scribble changes all texts, numbers and times that a value reaches.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf("changed"))
		}
	case reflect.String:
		v.SetString("changed")
	default:
	}
}
