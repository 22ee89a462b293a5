package work

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"
)

const present, change = workv1.IgnoreFieldsConditionOnSpokePresent, workv1.IgnoreFieldsConditionOnSpokeChange

// Row: work 6.1 AP update/createonly/readonly/SSA tests
func TestIgnore(t *testing.T) {
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: n,
		annotations: {a.b/c: x, plain: y}}, spec: {replicas: 3, template: {spec: {containers: [
			{name: web, image: "web:1", env: [{name: A, value: a}, {name: B, value: b}]},
			{name: side, image: "side:1", resources: {limits: {cpu: 1}}}]}}}}`
	const pod = `{spec: {replicas: 3, template: {spec: {containers: `
	for name, c := range map[string]struct {
		entry workv1.IgnoreField
		want  string
		fails string
	}{
		"a JSON path": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.replicas"}},
			want: `{spec: {template: {spec: {containers: [
				{name: web, image: "web:1", env: [{name: A, value: a}, {name: B, value: b}]},
				{name: side, image: "side:1", resources: {limits: {cpu: 1}}}]}}}}`,
		},
		"a JSON path into every element of a list": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[*].image", ".metadata.annotations"}},
			want: pod + `[{name: web, env: [{name: A, value: a}, {name: B, value: b}]},
				{name: side, resources: {limits: {cpu: 1}}}]}}}}`,
		},
		"a JSON path with a filter": {
			entry: workv1.IgnoreField{JSONPaths: []string{
				`$.spec.template.spec.containers[?(@.name=="web.x")].image`,
				`.spec.template.spec.containers[?(@.name=="side")].resources`, ".spec.template.spec.containers[0].env",
			}},
			want: pod + `[{name: web, image: "web:1"}, {name: side, image: "side:1"}]}}}}`,
		},
		"a JSON path that finds nothing": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.other.deep", ".spec.none"}}, want: "same",
		},
		"a JSON path that does not parse": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.containers[?(@.name==].image"}}, fails: "cannot be parsed",
		},
		"a JSON path to an element of a list": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[0]"}},
			fails: "does not end in the name of a field",
		},
		"a JSON path with a wildcard at its end": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.*"}}, fails: "does not end in the name of a field",
		},
		"a JSON path to a field of a list": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers.image"}}, fails: "has none",
		},
		"a JSON path without its dot": {
			entry: workv1.IgnoreField{JSONPaths: []string{"spec"}}, fails: "must begin with a dot",
		},
		"a JSON path that ends in a dot":   {entry: workv1.IgnoreField{JSONPaths: []string{".spec."}}, fails: "ends in a dot"},
		"an open bracket":                  {entry: workv1.IgnoreField{JSONPaths: []string{".spec]']"}}, fails: "not opened"},
		"the identity is not to be missed": {entry: workv1.IgnoreField{JSONPaths: []string{".metadata.name"}}, fails: "cannot be ignored"},
		"a JSON pointer": {
			entry: workv1.IgnoreField{JSONPointers: []string{
				"/spec/template/spec/containers/1", "/spec/template/spec/containers/0/env", "/metadata/annotations/a.b~1c",
				"/spec/none", "/spec/none/deeper", "/spec/template/spec/containers/7",
			}},
			want: pod + `[{name: web, image: "web:1"}]}}}}`,
		},
		"a JSON pointer with a bad index": {
			entry: workv1.IgnoreField{JSONPointers: []string{"/spec/template/spec/containers/first"}},
			fails: "cannot be removed",
		},
		"a JSON pointer without its slash": {
			entry: workv1.IgnoreField{JSONPointers: []string{"spec"}}, fails: "must begin with a slash",
		},
		"a jq expression": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{
				`.spec.template.spec.containers[] | select(.name == "web").env[] | select(.name == "B")`,
				`.spec.template.spec.containers[1]`,
			}},
			want: pod + `[{name: web, image: "web:1", env: [{name: A, value: a}]}]}}}}`,
		},
		"a jq expression that finds nothing": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".spec.template.spec.initContainers[]?"}}, want: "same",
		},
		"all three together": {
			entry: workv1.IgnoreField{
				JSONPaths: []string{".spec.replicas"}, JSONPointers: []string{"/metadata/annotations"},
				JQPathExpressions: []string{".spec.template"},
			},
			want: `{spec: {}}`,
		},
		"a jq expression that does not parse": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".spec["}}, fails: "cannot be parsed",
		},
		"a jq expression that does not compile": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"nowhere"}}, fails: "cannot be compiled",
		},
		"a jq expression that is no path": {entry: workv1.IgnoreField{JQPathExpressions: []string{"1 + 1"}}, fails: "fails"},
		"a jq expression that leaves no object": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"."}}, fails: "does not leave an object",
		},
		"a jq expression that leaves many objects": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".a), (."}}, fails: "more than one object",
		},
		"a jq expression that leaves nothing": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".a) | empty | (."}}, fails: "leaves nothing",
		},
		"a jq expression that never ends": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"last(repeat(.spec))"}}, fails: "runs longer than 1s",
		},
		"the environment is not to be seen": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{`if (env | length) > 0 then .spec else .nothing end`}},
			want:  "same",
		},
		"a condition that nobody knows": {
			entry: workv1.IgnoreField{Condition: "Never", JSONPaths: []string{".spec"}}, fails: `condition "Never" is unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := object(t, manifest)
			before := full.DeepCopy()
			got, err := ignore(t.Context(), full.Object, []workv1.IgnoreField{c.entry}, present)
			assert.Equal(t, before, full, "the manifest is not touched")
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			if c.want == "same" {
				assert.Equal(t, before.Object, got)
				return
			}
			delete(got, "apiVersion")
			delete(got, "kind")
			delete(got, "metadata")
			want := object(t, `{apiVersion: v1, kind: X, rest: `+c.want+`}`)
			assert.Equal(t, want.Object["rest"], any(got))
		})
	}
}

func TestIgnoreTakesTheEntriesOfACondition(t *testing.T) {
	full := object(t, `{apiVersion: v1, kind: ConfigMap, data: {a: "1", b: "2", c: "3"}}`).Object
	entries := []workv1.IgnoreField{
		{JSONPaths: []string{".data.a"}}, // without a condition, as a source that knows no defaults sends it
		{Condition: change, JSONPaths: []string{".data.b"}},
	}
	got, err := ignore(t.Context(), full, entries, present)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "2", "c": "3"}, got["data"])
	got, err = ignore(t.Context(), full, entries, change)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "1", "c": "3"}, got["data"])
}

func TestStoppingTheAgentIsNoFaultOfAManifest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := ignore(ctx, map[string]any{"a": "1"},
		[]workv1.IgnoreField{{JQPathExpressions: []string{"last(repeat(.a))"}}}, present)
	var stopped stoppedError
	require.ErrorAs(t, err, &stopped)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{".spec.replicas", "/spec/0", ".a[?(@.b==1)].c", "$['a.b']['c']", ".[", "del(.a)", "..", "\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object := map[string]any{"spec": map[string]any{"replicas": int64(3), "list": []any{map[string]any{"a": "b"}, "x"}}}
		for _, entry := range []workv1.IgnoreField{
			{JSONPaths: []string{text}}, {JSONPointers: []string{text}},
		} {
			_, _ = ignore(t.Context(), object, []workv1.IgnoreField{entry}, present)
		}
	})
}
