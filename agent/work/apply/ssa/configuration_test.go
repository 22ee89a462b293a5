package ssa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work/manifest"
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

// managed adds an entry to the managed fields of an object.
func managed(o *unstructured.Unstructured, manager, operation, fields string) *unstructured.Unstructured {
	o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation),
		APIVersion: o.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}))
	return o
}

// configure reads a manifest with ignored JSON paths.
func configure(t *testing.T, manifest string, ignored ...workv1.IgnoreField) *Configuration {
	t.Helper()
	c, err := Configure(t.Context(), object(t, manifest), &workv1.ServerSideApplyConfig{IgnoreFields: ignored})
	require.NoError(t, err)
	return c
}

const (
	portsManifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {a: x}}, spec: {
		replicas: 3, template: {spec: {containers: [{name: web, image: "web:1", args: [a, b], ports: [{containerPort: 80}]}]}}}}`
	portsLive = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {a: x, foreign: y}}, spec: {
		replicas: 3, paused: true, template: {spec: {dnsPolicy: ClusterFirst, containers: [
			{name: injected, image: side}, {name: web, image: "web:1", args: [a, b], imagePullPolicy: Always,
			ports: [{containerPort: 80, protocol: TCP}]}]}}}}`
	portsFields = `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{
		"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:ports":{
		"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`
)

// Shows: work/strategies
func TestConfigurationIsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(live *unstructured.Unstructured)
		fields string
		want   bool
	}{
		"as it was applied, with defaults and with what others added": {want: true},
		"a value is another": {change: func(live *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(live.Object, int64(5), "spec", "replicas")
		}},
		"a label is gone": {change: func(live *unstructured.Unstructured) { live.SetLabels(nil) }},
		"a field was taken over": {fields: `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:template":{"f:spec":{
			"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:ports":{
			"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`},
		"a field that the manifest does not have any more is held": {fields: `{"f:metadata":{"f:labels":{"f:a":{}}},
			"f:spec":{"f:replicas":{},"f:paused":{},"f:template":{"f:spec":{
			"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:ports":{
			"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`},
		"an element that the manifest does not have any more is held": {fields: `{"f:metadata":{"f:labels":{"f:a":{}}},
			"f:spec":{"f:replicas":{},"f:template":{"f:spec":{
			"f:containers":{"k:{\"name\":\"injected\"}":{".":{},"f:name":{}},
			"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:ports":{
			"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}`},
		"nothing was applied": {fields: "-"},
		"an element is gone": {change: func(live *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(live.Object, []any{map[string]any{"name": "injected"}},
				"spec", "template", "spec", "containers")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, portsLive)
			if c.change != nil {
				c.change(live)
			}
			if c.fields == "" {
				c.fields = portsFields
			}
			if c.fields != "-" {
				managed(live, "work-agent", "Apply", c.fields)
			}
			assert.Equal(t, c.want, configure(t, portsManifest).InForce(live, false))
		})
	}
}

// Shows: work/ignore-on-change
func TestDigestFollowsWhatIsApplied(t *testing.T) {
	c := configure(t, portsManifest, workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".spec.replicas"}})
	live := func() *unstructured.Unstructured {
		return managed(object(t, portsLive), "work-agent", "Apply", portsFields)
	}
	before := c.Digest(live())
	assert.NotEqual(t, manifest.Digest{}, before)
	set := func(value any, path ...string) *unstructured.Unstructured {
		o := live()
		require.NoError(t, unstructured.SetNestedField(o.Object, value, path...))
		return o
	}
	assert.Equal(t, before, c.Digest(set(int64(9), "spec", "replicas")), "an ignored field")
	assert.Equal(t, before, c.Digest(set("x", "spec", "other")), "a field of others")
	assert.Equal(t, before, c.Digest(set("x", "metadata", "labels", "theirs")), "a label of others")
	assert.NotEqual(t, before, c.Digest(set("z", "metadata", "labels", "a")), "a label of ours")
	taken := managed(object(t, portsLive), "work-agent", "Apply", `{"f:metadata":{"f:labels":{"f:a":{}}}}`)
	assert.NotEqual(t, before, c.Digest(taken), "what was taken over")
	assert.Equal(t, manifest.Digest{}, c.Digest(object(t, portsLive)), "nothing applied")
}

// Shows: work/ignore-on-present
func TestPlanKeepsWhatOnlyWeHold(t *testing.T) {
	const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: new, ignored: new, tuned: new}}`
	const fields = `{"f:data":{"f:mine":{},"f:ignored":{},"f:tuned":{}}}`
	ignored := []workv1.IgnoreField{
		{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".data.ignored"}},
		{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".data.tuned"}},
	}
	c := configure(t, manifest, ignored...)
	live := func(mark, mine string) *unstructured.Unstructured {
		o := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "7"},
			data: {mine: old, ignored: live, tuned: live}}`)
		o.SetAnnotations(map[string]string{annotationHash: mark})
		return managed(o, "work-agent", "Apply", mine)
	}
	for name, tc := range map[string]struct {
		live    *unstructured.Unstructured
		trusted bool
		want    map[string]any
		exact   bool
	}{
		"everything goes into a new object": {want: map[string]any{"mine": "new", "ignored": "new", "tuned": "new"}},
		"a new manifest leaves what is ignored on what exists, but not the rest": {
			live: live("other", fields), exact: true,
			want: map[string]any{"mine": "new", "ignored": "live", "tuned": "new"},
		},
		"the same manifest repairs only the rest": {
			live: live(c.hash, fields), exact: true,
			want: map[string]any{"mine": "new", "ignored": "live", "tuned": "live"},
		},
		"what others hold alone is left to them": {
			live: managed(live(c.hash, `{"f:data":{"f:mine":{}}}`), "hpa", "Update", `{"f:data":{"f:ignored":{}}}`),
			want: map[string]any{"mine": "new"},
		},
		"what others hold as well is left to them": {
			live: managed(live(c.hash, fields), "hpa", "Update", `{"f:data":{"f:ignored":{},"f:tuned":{}}}`),
			want: map[string]any{"mine": "new"},
		},
		"the mark of another agent counts with other evidence": {
			live: live("0123456789abcdef0123456789abcdef", fields), trusted: true, exact: true,
			want: map[string]any{"mine": "new", "ignored": "live", "tuned": "live"},
		},
		"and not without": {
			live: live("0123456789abcdef0123456789abcdef", fields), exact: true,
			want: map[string]any{"mine": "new", "ignored": "live", "tuned": "new"},
		},
		"an object that was there before is taken as it is": {
			live: managed(live("", `{"f:metadata":{}}`), "kubectl", "Update", fields), trusted: true,
			want: map[string]any{"mine": "new", "tuned": "new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := c.Next(tc.live, tc.trusted)
			assert.Equal(t, tc.want, next.Object["data"])
			assert.Equal(t, c.hash, next.GetAnnotations()[annotationHash])
			assert.Equal(t, tc.exact, next.GetResourceVersion() == "7", "guarded by the version")
		})
	}
}

func TestPlanKeepsElementsOfLists(t *testing.T) {
	c := configure(t, `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [
		{name: web, image: "web:2", env: [{name: A, value: new}]}, {name: side, image: new}]}}`,
		workv1.IgnoreField{JQPathExpressions: []string{
			`.spec.containers[] | select(.name == "side")`, `.spec.containers[0].env[] | select(.name == "A").value`,
		}})
	live := managed(object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, resourceVersion: "1"}, spec: {containers: [
		{name: web, image: "web:1", env: [{name: A, value: live}]}, {name: side, image: live, tty: true}]}}`),
		"work-agent", "Apply", `{"f:spec":{"f:containers":{
			"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:env":{
				"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}},
			"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}`)
	next := c.Next(live, true)
	want := object(t, `{apiVersion: v1, kind: Pod, spec: {containers: [
		{name: web, image: "web:2", env: [{name: A, value: live}]}, {name: side, image: live}]}}`)
	assert.Equal(t, want.Object["spec"], next.Object["spec"])

	managed(live, "other", "Apply", `{"f:spec":{"f:containers":{"k:{\"name\":\"side\"}":{".":{},"f:name":{}}}}}`)
	assert.Equal(t, want.Object["spec"], c.Next(live, true).Object["spec"], "found by the name that both hold")
}

func TestHandOver(t *testing.T) {
	const uid = "u-1"
	const owner = `"f:ownerReferences":{"k:{\"uid\":\"u-1\"}":{}}`
	const written = `"f:ownerReferences":{".":{},"k:{\"uid\":\"u-1\"}":{}}`
	type entries map[string]string
	for name, c := range map[string]struct {
		have  entries
		adopt bool
		want  entries
	}{
		"nothing to do":              {have: entries{"Apply": `{"f:data":{}}`, "Update": `{"f:metadata":{` + written + `}}`}, adopt: true},
		"an object that others made": {have: entries{}},
		"the owner of a new object goes to the agent": {
			have: entries{"Apply": `{"f:data":{},"f:metadata":{` + owner + `,"f:labels":{"f:a":{}}}}`},
			want: entries{
				"Apply": `{"f:data":{},"f:metadata":{"f:labels":{"f:a":{}}}}`, "Update": `{"f:metadata":{` + written + `}}`,
			},
		},
		"an object without anything else": {
			have: entries{"Apply": `{"f:data":{},"f:metadata":{` + owner + `}}`},
			want: entries{"Apply": `{"f:data":{}}`, "Update": `{"f:metadata":{` + written + `}}`},
		},
		"a list of owners without any other": {
			have: entries{"Apply": `{"f:data":{},"f:metadata":{` + written + `}}`},
			want: entries{"Apply": `{"f:data":{}}`, "Update": `{"f:metadata":{` + written + `}}`},
		},
		"fields that cannot be read": {have: entries{"Apply": `{"f:metadata":{` + owner + `}}`, "Update": `[]`}},
		"owners that the manifest names stay where they are": {
			have: entries{"Apply": `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u-1\"}":{},"k:{\"uid\":\"x\"}":{}}}}`},
			want: entries{
				"Apply":  `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"x\"}":{}}}}`,
				"Update": `{"f:metadata":{` + written + `}}`,
			},
		},
		"what was written under another strategy becomes applied": {
			have:  entries{"Update": `{"f:data":{"f:a":{}},"f:metadata":{` + written + `,"f:labels":{"f:a":{}}}}`},
			adopt: true,
			want: entries{
				"Apply":  `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:a":{}}}}`,
				"Update": `{"f:metadata":{` + written + `}}`,
			},
		},
		"and is joined to what is": {
			have:  entries{"Apply": `{"f:data":{"f:b":{}}}`, "Update": `{"f:data":{"f:a":{}}}`},
			adopt: true, want: entries{"Apply": `{"f:data":{"f:a":{},"f:b":{}}}`},
		},
		"but only on demand": {have: entries{"Apply": `{"f:data":{"f:b":{}}}`, "Update": `{"f:data":{"f:a":{}}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
			for operation, fields := range c.have {
				managed(o, "work-agent", operation, fields)
			}
			got, moved := HandOver(o, "work-agent", uid, c.adopt)
			assert.Equal(t, c.want != nil, moved)
			result := entries{}
			for _, entry := range got {
				result[string(entry.Operation)] = entry.FieldsV1.GetRawString()
				assert.Equal(t, "work-agent", entry.Manager)
				assert.Equal(t, "v1", entry.APIVersion)
			}
			for operation, fields := range c.want {
				assert.JSONEq(t, fields, result[operation], operation)
			}
			assert.Len(t, result, len(c.want))
		})
	}
}

func TestSecretIsAppliedAsItIsKept(t *testing.T) {
	c := configure(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: x, b: "y"}, data: {a: eA==, c: eg==}}`,
		workv1.IgnoreField{JSONPaths: []string{".stringData.b"}})
	assert.Equal(t, map[string]any{"a": "eA==", "b": "eQ==", "c": "eg=="}, c.full["data"])
	assert.Equal(t, map[string]any{"a": "eA==", "c": "eg=="}, c.kept["data"])
	assert.NotContains(t, c.full, "stringData")
	_, err := Configure(t.Context(), object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: 5}`), nil)
	require.EqualError(t, err, "the field stringData of the Secret is no map of keys and texts")
}

func TestDropNullTimestamps(t *testing.T) {
	o := object(t, `{kind: X, metadata: {name: x, creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null}},
		list: [{metadata: {creationTimestamp: null}}, {metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}}],
		creationTimestamp: null}}`)
	dropNullTimestamps(o.Object)
	assert.Equal(t, object(t, `{kind: X, metadata: {name: x}, spec: {template: {metadata: {}},
		list: [{metadata: {}}, {metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}}],
		creationTimestamp: null}}`), o)
}
