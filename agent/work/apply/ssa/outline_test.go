package ssa

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestOnlyASecretHasItsTextFolded(t *testing.T) {
	for text, folded := range map[string]bool{
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: x}}`:      true,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: s}, stringData: {a: x}}`:   false,
		`{apiVersion: x/v1, kind: Secret, metadata: {name: s}, stringData: {a: x}}`:    false,
		`{apiVersion: x/v1, kind: ConfigMap, metadata: {name: s}, stringData: {a: x}}`: false,
	} {
		_, kept := configure(t, text).full["stringData"]
		assert.Equal(t, folded, !kept, text)
	}
}

// The API server has no owner for who the object is, and for the status only where it is not a subresource.
func TestWhatMustBeOwnedToBeInForce(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, fields string
		want             bool
	}{
		"content":               {`{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: 1}`, `{"f:spec":{}}`, true},
		"nothing":               {`{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: 1}`, ``, false},
		"nothing readable":      {`{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: 1}`, `[`, false},
		"a label":               {`{apiVersion: x/v1, kind: X, metadata: {name: x, labels: {a: b}}}`, `{"f:metadata":{"f:labels":{"f:a":{}}}}`, true},
		"a label of us, others": {`{apiVersion: x/v1, kind: X, metadata: {name: x, labels: {a: b, c: d}}}`, `{"f:metadata":{"f:labels":{"f:a":{}}}}`, false},
		"a status of its own":   {`{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: 1, status: 2}`, `{"f:spec":{},"f:status":{}}`, true},
		"a status subresource":  {`{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: 1, status: 2}`, `{"f:spec":{}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, c.manifest)
			if c.fields != "" {
				managed(live, "work-agent", "Apply", c.fields)
			}
			assert.Equal(t, c.want, configure(t, c.manifest).InForce(live, false))
		})
	}
}

// Entries of other managers and of other versions of the API stay as they are.
func TestHandOverLeavesOthersAlone(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	managed(o, "kubectl", "Update", `{"f:data":{"f:x":{}}}`)
	managed(o, "m", "Apply", `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}`)
	entries := o.GetManagedFields()
	entries = append(entries, metav1.ManagedFieldsEntry{
		Manager: "m", Operation: "Apply", APIVersion: "v0", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
	}, metav1.ManagedFieldsEntry{
		Manager: "work-agent", Operation: "Update", APIVersion: "v0", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
	})
	o.SetManagedFields(entries)
	got, moved := HandOver(o, "m", "u", true)
	require.True(t, moved)
	require.Len(t, got, 4)
	assert.Equal(t, []metav1.ManagedFieldsEntry{entries[0], entries[2], entries[3]}, got[:3])
	assert.Equal(t, "work-agent", got[3].Manager)
	assert.Equal(t, "v1", got[3].APIVersion)
	assert.JSONEq(t, `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}}}}`, got[3].FieldsV1.GetRawString())
}

// FuzzNext checks what is sent for an object that exists: every field of the manifest that is not ignored, and an
// ignored one only at its live value, when nobody else owns it.
func FuzzNext(f *testing.F) {
	for i := range byte(64) {
		f.Add(i, 63-i, i^21, i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, ignored, mine, others byte, onChange, trusted bool) {
		has := func(set byte, n int) bool { return set>>n&1 == 1 }
		data, live := map[string]any{}, map[string]any{}
		entry := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent}
		if onChange {
			entry.Condition = workv1.IgnoreFieldsConditionOnSpokeChange
		}
		ours, theirs := map[string]any{}, map[string]any{}
		for n := range 8 {
			key := fmt.Sprint("k", n)
			data[key], live[key] = "wanted", "live"
			if has(ignored, n) {
				entry.JSONPaths = append(entry.JSONPaths, ".data."+key)
			}
			if has(mine, n) {
				ours["f:"+key] = map[string]any{}
			}
			if has(others, n) {
				theirs["f:"+key] = map[string]any{}
			}
		}
		desired := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data,
		}}
		c, err := Configure(t.Context(), desired, &workv1.ServerSideApplyConfig{IgnoreFields: []workv1.IgnoreField{entry}})
		require.NoError(t, err)
		now := desired.DeepCopy()
		now.Object["data"] = live
		if trusted {
			now.SetAnnotations(map[string]string{annotationHash: c.hash})
		}
		managed(now, "work-agent", "Apply", encoded(t, map[string]any{"f:data": ours}))
		managed(now, "other", "Update", encoded(t, map[string]any{"f:data": theirs}))
		next, _, err := unstructured.NestedMap(c.Next(now, false).Object, "data")
		require.NoError(t, err)
		for n := range 8 {
			key := fmt.Sprint("k", n)
			sent, there := next[key]
			switch {
			case !has(ignored, n) || onChange && !trusted:
				assert.Equal(t, "wanted", sent, "%s is not ignored", key)
			case has(mine, n) && !has(others, n):
				assert.Equal(t, "live", sent, "%s would be removed", key)
			default:
				assert.False(t, there, "%s is ignored", key)
			}
		}
		whole, _, err := unstructured.NestedMap(c.Next(nil, false).Object, "data")
		require.NoError(t, err)
		assert.Equal(t, data, whole, "an object that does not exist gets everything")
	})
}

// encoded is a value as JSON.
func encoded(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return string(raw)
}
