package ignore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work/jsonpath"
)

// object parses YAML as the API server would return it.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

const present, change = workv1.IgnoreFieldsConditionOnSpokePresent, workv1.IgnoreFieldsConditionOnSpokeChange

// Shows: work/strategies
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
		"a JSON path to a field of the object": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec"}}, want: "{}",
		},
		"a JSON path in brackets": {entry: workv1.IgnoreField{JSONPaths: []string{"['spec']"}}, want: "{}"},
		"a JSON path that begins with brackets": {
			entry: workv1.IgnoreField{JSONPaths: []string{"['spec'].template"}}, want: "{spec: {replicas: 3}}",
		},
		"a JSON path that ends in brackets": {
			entry: workv1.IgnoreField{JSONPaths: []string{".spec['template']"}}, want: "{spec: {replicas: 3}}",
		},
		"a JSON path without its dot at the start": {
			entry: workv1.IgnoreField{JSONPaths: []string{"spec.template"}}, fails: "must begin with a dot",
		},
		"a JSON path with an escaped dot": {
			entry: workv1.IgnoreField{JSONPaths: []string{`.metadata.annotations.a\.b/c`, ".spec"}}, want: "{}",
		},
		"a path to nothing but the object": {entry: workv1.IgnoreField{JSONPaths: []string{""}}, fails: "must begin with a dot"},
		"the apiVersion":                   {entry: workv1.IgnoreField{JSONPaths: []string{".apiVersion"}}, fails: "cannot be ignored"},
		"the kind":                         {entry: workv1.IgnoreField{JSONPaths: []string{".kind"}}, fails: "cannot be ignored"},
		"the namespace":                    {entry: workv1.IgnoreField{JSONPaths: []string{".metadata.namespace"}}, fails: "cannot be ignored"},
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
		"a jq function that does not exist": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"nowhere"}}, fails: "nowhere with 0 arguments is not supported",
		},
		"a jq variable that does not exist": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"$nowhere"}}, fails: "cannot be compiled",
		},
		"a jq expression that is no path": {entry: workv1.IgnoreField{JQPathExpressions: []string{"1 + 1"}}, fails: "fails"},
		"a jq expression that leaves no object": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{"."}}, fails: "does not leave an object",
		},
		"more than one jq expression": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".a), (."}}, fails: "cannot be parsed",
		},
		"a jq expression that is empty": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{""}}, fails: "it is empty",
		},
		"a jq expression that is a comment": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{".spec[]? | # nothing"}}, fails: "cannot be parsed",
		},
		"several fields in one jq expression": {
			entry: workv1.IgnoreField{JQPathExpressions: []string{
				`.metadata.annotations as $a | (.spec.replicas, .spec.template.spec.containers[length - 3].image, .spec.paused)`,
				`.spec.template.spec.containers[] | if has("env") then .env else empty end`,
				`.. | select(type == "object" and (.limits? // {}) != {}).limits`, `.spec.template.spec.containers[-1].image`,
				`first(.spec.template.spec.containers[] | select(any(.image; test("^WEB"; "i")))).image`,
				`getpath(["spec", "none"])`, `.spec.none`,
				`.spec.template.spec.containers[] | select([.name] | inside(["other", "x"]))`, `.spec.template.spec.containers[] | select(.name | IN("a", "b"))`,
			}},
			want: `{spec: {template: {spec: {containers: [{name: web}, {name: side, resources: {}}]}}}}`,
		},
		"a condition that nobody knows": {
			entry: workv1.IgnoreField{Condition: "Never", JSONPaths: []string{".spec"}}, fails: `condition "Never" is unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := object(t, manifest)
			before := full.DeepCopy()
			got, err := Fields(t.Context(), full.Object, []workv1.IgnoreField{c.entry}, present)
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
	got, err := Fields(t.Context(), full, entries, present)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "2", "c": "3"}, got["data"])
	got, err = Fields(t.Context(), full, entries, change)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "1", "c": "3"}, got["data"])
}

// chain returns an object with a field a nested to a depth, some kilobytes of YAML.
func chain(depth int) map[string]any {
	var inner any = map[string]any{"x": "leaf"}
	for range depth {
		inner = map[string]any{"a": inner}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "n", "namespace": "ns"}, "spec": inner,
	}
}

func TestNoExpressionTakesMoreThanItsBound(t *testing.T) {
	path := func(text string) workv1.IgnoreField { return workv1.IgnoreField{JSONPaths: []string{text}} }
	jq := func(text string) workv1.IgnoreField { return workv1.IgnoreField{JQPathExpressions: []string{text}} }
	for name, c := range map[string]struct {
		entry workv1.IgnoreField
		fails string
	}{
		"descents in a JSON path":    {path(".spec..a..a..a.x"), "looks at more than 250000 values"},
		"one descent in a JSON path": {path(".spec..a.x"), ""},
		"many paths, each within its bound": {
			workv1.IgnoreField{JSONPaths: slices.Repeat([]string{".spec..['a','a','a','a'].a.x"}, 200)},
			"and those before it look at more than 1000000 values",
		},
		"descents in filters":           {path(`.spec..[?(@..a)].x`), "cannot be filtered"},
		"unions of unions":              {path(".spec" + strings.Repeat("['a','a','a','a']", 12) + ".x"), "looks at more than"},
		"a text as a list of bytes":     {path(strings.Repeat(".*", 3) + ".x"), "of something that has none"},
		"filters in filters in filters": {path("." + strings.Repeat("[?(@", 2000) + ".x"), "more than the limit of 4096"},
		"a JSON pointer of any length": {
			workv1.IgnoreField{JSONPointers: []string{strings.Repeat("/a", 4096)}}, "more than the limit of 4096",
		},
		"jq of any length":                 {jq(strings.Repeat(".a|", 4096) + "."), "more than the limit of 4096"},
		"descents in jq":                   {jq(".spec | .. | .. | .. | .x?"), "finds more than 10000 fields"},
		"descents in jq that find nothing": {jq("last(.. | .. | .. | .. | .. | .nowhere?) | empty"), "runs longer than 1s"},
		"a text that is repeated":          {jq(`select(("x" * 1000000000) == "x")`), "operator * is not supported"},
		"a text that is doubled":           {jq("select(tojson" + strings.Repeat(" | . + .", 40) + ` == "")`), "is not supported"},
		"a list that is doubled":           {jq("select(." + strings.Repeat(" | [., .]", 40) + " | tostring)"), "not a constant"},
		"a list that is doubled by its index": {
			jq("select([.]" + strings.Repeat(" | [.[0,0]]", 40) + " | tostring)"), "not a constant",
		},
		"a list that has all of a list":     {jq("select([.spec[]] == [])"), "not a constant"},
		"a text that is put into itself":    {jq(`select(.kind` + strings.Repeat(` | "\(.)\(.)"`, 40) + ` == "")`), "not a constant"},
		"all numbers":                       {jq("select([range(infinite)] == [])"), "not a constant"},
		"a function that calls itself":      {jq("def f: [f]; select(f)"), "def, import and include"},
		"a loop":                            {jq("select(reduce range(1000000000) as $i ([]; [.]) == [])"), "is not supported"},
		"another loop":                      {jq("select(until(false; [., .]))"), "until with 2 arguments is not supported"},
		"an endless loop":                   {jq("last(repeat(.spec))"), "repeat with 1 arguments is not supported"},
		"entries of entries":                {jq("select(to_entries)"), "to_entries with 0 arguments is not supported"},
		"an update":                         {jq(".spec |= [., .]"), "the operator |= is not supported"},
		"a list within itself":              {jq(". as $x | .spec[$x | keys]"), "an index that is neither"},
		"a pattern of any size":             {jq(`select(test("` + strings.Repeat("(a{1000})", 100) + `"))`), "more than the limit of 256"},
		"a pattern that is in the manifest": {jq("select(test(.kind))"), "not a constant"},
		"the environment":                   {jq("select($ENV.HOME)"), "$ENV with 0 arguments is not supported"},
		"destructuring":                     {jq(". as [$a] | .spec"), "a destructuring pattern is not supported"},
		"a format":                          {jq(`select(@json "\(.)")`), "is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Fields(t.Context(), chain(1000), []workv1.IgnoreField{c.entry}, present)
			if c.fails == "" {
				require.NoError(t, err)
				assert.NotEmpty(t, got)
				return
			}
			require.ErrorContains(t, err, c.fails)
			assert.Less(t, len(err.Error()), 2*jsonpath.MaxLength+1024)
		})
	}
}

func TestAsManyFieldsAsTheLimitCanBeIgnored(t *testing.T) {
	items := make([]any, maxJQFound)
	for i := range items {
		items[i] = map[string]any{"x": "1", "y": "2"}
	}
	full := map[string]any{"spec": map[string]any{"items": items}}
	got, err := Fields(t.Context(), full, []workv1.IgnoreField{
		{JQPathExpressions: []string{".spec.items[].x"}, JSONPaths: []string{".spec.items[*].none"}},
	}, present)
	require.NoError(t, err)
	rest, _, err := unstructured.NestedSlice(got, "spec", "items")
	require.NoError(t, err)
	require.Len(t, rest, maxJQFound)
	assert.Equal(t, map[string]any{"y": "2"}, rest[maxJQFound-1])
}

func TestThePathsOfFieldsHaveALimit(t *testing.T) {
	// Every path has ten keys, so that the limit of keys is reached with the limit of fields.
	items := make([]any, maxJQFound)
	for i := range items {
		items[i] = map[string]any{"x": "1"}
	}
	var spec any = map[string]any{"items": items}
	for range 6 {
		spec = map[string]any{"a": spec}
	}
	full := map[string]any{"spec": spec}
	_, err := Fields(t.Context(), full, []workv1.IgnoreField{{JQPathExpressions: []string{".spec.a.a.a.a.a.a.items[].x"}}}, present)
	require.NoError(t, err)
	_, err = Fields(t.Context(), map[string]any{"more": full},
		[]workv1.IgnoreField{{JQPathExpressions: []string{".more.spec.a.a.a.a.a.a.items[].x"}}}, present)
	require.ErrorContains(t, err, "their paths have more than 100000 keys together")
}

func TestStoppingTheAgentIsNoFaultOfAManifest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Fields(ctx, chain(1000),
		[]workv1.IgnoreField{{JQPathExpressions: []string{"last(.. | .. | .. | .. | .nowhere?)"}}}, present)
	var stopped StoppedError
	require.ErrorAs(t, err, &stopped)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// leavesOf returns the scalar values of an object by their paths.
func leavesOf(at string, value any, leaves map[string]any) map[string]any {
	switch inner := value.(type) {
	case map[string]any:
		for key, next := range inner {
			leavesOf(at+"/"+key, next, leaves)
		}
	case []any:
		for _, next := range inner {
			leavesOf(at+"/-", next, leaves)
		}
	default:
		leaves[at+"="+fmt.Sprint(value)] = value
	}
	return leaves
}

func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{
		"", "# x", ".spec.replicas", "/spec/0", ".spec.list[?(@.b==1)].c", "$['a.b']['c']", ".[", "del(.a)", "..", "\\", ".spec..a.x",
		".spec..a..a..x", ".spec.list[*].a", "/spec/list/0", ".. | .x?", ".spec.list[] | select(.a)", ".metadata",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		full := chain(40)
		full["list"] = []any{map[string]any{"a": "b", "c": int64(3)}, "x", nil, []any{true, 0.5}}
		before := runtime.DeepCopyJSON(full)
		for _, entry := range []workv1.IgnoreField{
			{JSONPaths: []string{text}}, {JSONPointers: []string{text}}, {JQPathExpressions: []string{text}},
		} {
			rest, err := Fields(t.Context(), full, []workv1.IgnoreField{entry}, present)
			require.Equal(t, before, full, "the manifest is not touched")
			if err != nil {
				assert.NotEmpty(t, err.Error())
				continue
			}
			require.NoError(t, sameIdentity(full, rest))
			had := leavesOf("", full, map[string]any{})
			for leaf, value := range leavesOf("", rest, map[string]any{}) {
				require.Equal(t, had[leaf], value, "what is left is as it was: %s", leaf)
			}
		}
	})
}
