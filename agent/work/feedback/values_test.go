package feedback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
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

// Shows: work/feedback-read
func TestReadFeedback(t *testing.T) {
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, status: {replicas: 2, readyReplicas: 1,
		conditions: [{type: A, status: "True"}, {type: B, status: "False"}]}, spec: {paused: true, half: 0.5}}`
	job := `{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`
	integer := func(name string, n int64) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &n}}
	}
	text := func(name, s string) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &s}}
	}
	wellKnown := workv1.FeedbackRule{Type: workv1.WellKnownStatusType}
	path := func(pairs ...string) workv1.FeedbackRule {
		rule := workv1.FeedbackRule{Type: workv1.JSONPathsType}
		for i := 0; i < len(pairs); i += 2 {
			rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: pairs[i], Path: pairs[i+1]})
		}
		return rule
	}
	versioned := path("r", ".status.replicas")
	versioned.JsonPaths[0].Version = "v2"
	for name, c := range map[string]struct {
		object string
		rules  []workv1.FeedbackRule
		want   []workv1.FeedbackValue
		fails  string
	}{
		"the well-known status of a Deployment": {
			deployment, []workv1.FeedbackRule{wellKnown},
			[]workv1.FeedbackValue{integer("ReadyReplicas", 1), integer("Replicas", 2)}, "",
		},
		"the well-known status of a Job": {
			job, []workv1.FeedbackRule{wellKnown},
			[]workv1.FeedbackValue{text("JobComplete", "True"), integer("JobSucceeded", 1)}, "",
		},
		"the well-known status of a DaemonSet": {
			`{apiVersion: apps/v1, kind: DaemonSet, status: {numberReady: 1, desiredNumberScheduled: 3, numberAvailable: 2}}`,
			[]workv1.FeedbackRule{wellKnown},
			[]workv1.FeedbackValue{
				integer("NumberReady", 1), integer("DesiredNumberScheduled", 3), integer("NumberAvailable", 2),
			}, "",
		},
		"a DaemonSet whose pods nobody has counted yet has no number": {
			`{apiVersion: apps/v1, kind: DaemonSet, status: {numberReady: 0, desiredNumberScheduled: 0}}`,
			[]workv1.FeedbackRule{wellKnown}, nil, "",
		},
		"a DaemonSet that needs no pods has none": {
			`{apiVersion: apps/v1, kind: DaemonSet,
				status: {observedGeneration: 1, numberReady: 0, desiredNumberScheduled: 0}}`,
			[]workv1.FeedbackRule{wellKnown},
			[]workv1.FeedbackValue{integer("NumberReady", 0), integer("DesiredNumberScheduled", 0)}, "",
		},
		"the well-known status of a Pod": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`,
			[]workv1.FeedbackRule{wellKnown},
			[]workv1.FeedbackValue{text("PodReady", "False"), text("PodPhase", "Running")}, "",
		},
		"the well-known status of a Job that began": {
			"{apiVersion: batch/v1, kind: Job}", []workv1.FeedbackRule{wellKnown}, nil, "",
		},
		"another version of the kind": {
			"{apiVersion: apps/v1beta1, kind: Deployment}", []workv1.FeedbackRule{wellKnown}, nil,
			"cannot find the wellknown statuses for resource with gvk apps/v1beta1, Kind=Deployment",
		},
		"a null is left out": {
			"{apiVersion: v1, kind: X, a: null}", []workv1.FeedbackRule{path("a", ".a")}, nil, "",
		},
		"a loop": {
			deployment, []workv1.FeedbackRule{path("a", "range .status.conditions[*]")}, nil, "range or an end is not supported",
		},
		"several paths in one": {
			deployment, []workv1.FeedbackRule{path("a", ".status}{.spec")}, nil, "more than one path",
		},
		"the first of a map has the least key": {
			`{apiVersion: v1, kind: X, data: {e: zz, d: mm, c: kk, b: aa, a: zzz}}`,
			[]workv1.FeedbackRule{path("a", ".data.*", "b", "..d")},
			[]workv1.FeedbackValue{text("a", "zzz"), text("b", "mm")}, "",
		},
		"the first of a list is the first of the list": {
			`{apiVersion: v1, kind: X, items: [{n: 1}, {list: [{v: z}, {v: b}]}, {list: [{v: a}]}]}`,
			[]workv1.FeedbackRule{path("a", ".items[*].list[*].v", "b", `.items[1].list[?(@.v!="x")].v`)},
			[]workv1.FeedbackValue{text("a", "z"), text("b", "z")}, "",
		},
		"a kind without one": {
			`{apiVersion: v1, kind: ConfigMap}`, []workv1.FeedbackRule{wellKnown}, nil,
			"cannot find the wellknown statuses",
		},
		"values by path, with the first of several": {
			deployment,
			[]workv1.FeedbackRule{path("name", ".metadata.name", "first", ".status.conditions[*].type", "p", ".spec.paused")},
			[]workv1.FeedbackValue{
				text("name", "d"), text("first", "A"),
				{Name: "p", Value: workv1.FieldValue{Type: workv1.Boolean, Boolean: ptr.To(true)}},
			},
			"",
		},
		"what is missing is left out": {deployment, []workv1.FeedbackRule{path("x", ".status.nothing.here")}, nil, ""},
		"one bad path does not stop the others": {
			deployment, []workv1.FeedbackRule{path("bad", ".status[", "good", ".status.replicas")},
			[]workv1.FeedbackValue{integer("good", 2)}, `value "bad"`,
		},
		"a list is refused":             {deployment, []workv1.FeedbackRule{path("l", ".status.conditions")}, nil, "gives a list"},
		"a map is refused":              {deployment, []workv1.FeedbackRule{path("m", ".status")}, nil, "gives a map"},
		"a fraction is refused":         {deployment, []workv1.FeedbackRule{path("f", ".spec.half")}, nil, "fraction"},
		"another version is refused":    {deployment, []workv1.FeedbackRule{versioned}, nil, "wants version v2"},
		"an unknown type of rule is so": {deployment, []workv1.FeedbackRule{{Type: "X"}}, nil, "unknown type"},
		"a name that comes twice": {
			deployment, []workv1.FeedbackRule{wellKnown, path("Replicas", ".metadata.name")},
			[]workv1.FeedbackValue{integer("ReadyReplicas", 1), integer("Replicas", 2)}, "of this name already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(false, DefaultMaxRawLength)
			for range 2 { // compiled and remembered
				got, err := p.Values(object(t, c.object), c.rules)
				assert.Equal(t, c.want, got)
				if c.fails == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.fails)
				}
			}
		})
	}
}

// Shows: work/status-fits
func TestRawFeedback(t *testing.T) {
	deployment := `{apiVersion: apps/v1, kind: Deployment, status: {replicas: 2, half: 0.5, none: null, z: {b: 1, a: "<x>"},
		conditions: [{type: A, status: "True"}, {type: B, status: "False"}], single: [7]}, text: ` + strings.Repeat("x", 2000) + `,
		few: [1, 2], most: [` + strings.Repeat("x", 1020) + `], more: [` + strings.Repeat("x", 1021) + `],
		a: {big: ` + strings.Repeat("x", 2500) + `}, b: {big: ` + strings.Repeat("y", 2500) + `}, c: {big: z},
		wide: [` + strings.Repeat("é", 600) + `], long: [` + strings.Repeat("x", 1100) + `]}`
	raw := func(text string) *workv1.FieldValue { return &workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: &text} }
	for name, c := range map[string]struct {
		path  string
		limit int
		want  *workv1.FieldValue
		fails string
	}{
		"a scalar is a scalar":            {path: ".status.replicas", want: &workv1.FieldValue{Type: workv1.Integer, Integer: ptr.To(int64(2))}},
		"a map has sorted keys":           {path: ".status.z", want: raw(`{"a":"\u003cx\u003e","b":1}`)},
		"a list":                          {path: ".status.conditions", want: raw(`[{"status":"True","type":"A"},{"status":"False","type":"B"}]`)},
		"a fraction":                      {path: ".status.half", want: raw("0.5")},
		"several results":                 {path: ".status.conditions[*].type", want: raw(`["A","B"]`)},
		"a filter with one result":        {path: `.status.conditions[?(@.type=="B")]`, want: raw(`{"status":"False","type":"B"}`)},
		"a filter with one value":         {path: `.status.conditions[?(@.type=="B")].status`, want: &workv1.FieldValue{Type: workv1.String, String: ptr.To("False")}},
		"one item":                        {path: ".status.single[*]", want: &workv1.FieldValue{Type: workv1.Integer, Integer: ptr.To(int64(7))}},
		"nothing":                         {path: ".status.nothing[*].x"},
		"a null":                          {path: ".status.none"},
		"a string has no limit":           {path: ".text", want: &workv1.FieldValue{Type: workv1.String, String: ptr.To(strings.Repeat("x", 2000))}},
		"more than the limit":             {path: ".status.conditions", limit: 20, fails: "more than the limit of 20"},
		"more than the default":           {path: ".long", fails: "more than the limit of 1024"},
		"more than the API takes":         {path: ".long", limit: 4096, fails: "more than the 1024 that the API takes"},
		"a list of the limit":             {path: ".few", limit: 5, want: raw("[1,2]")},
		"a list beyond the limit":         {path: ".few", limit: 4, fails: "the raw JSON has 5 bytes, more than the limit of 4"},
		"results of the limit":            {path: ".few[*]", limit: 5, want: raw("[1,2]")},
		"results beyond the limit":        {path: ".few[*]", limit: 4, fails: "the raw JSON has 5 bytes, more than the limit of 4"},
		"results far beyond the limit":    {path: ".few[*]", limit: 3, fails: "the raw JSON of 2 values has more bytes than the limit of 3"},
		"as long as the API takes":        {path: ".most", limit: 4096, want: raw(`["` + strings.Repeat("x", 1020) + `"]`)},
		"longer than the API takes":       {path: ".more", limit: 4096, fails: "the raw JSON has 1025 characters, more than the 1024 that"},
		"results longer than it takes":    {path: "..big", limit: 1 << 20, fails: "the raw JSON of 3 values has more bytes than the limit of 4096"},
		"the API counts characters":       {path: ".wide", limit: 4096, want: raw(`["` + strings.Repeat("é", 600) + `"]`)},
		"the limit of the agent is bytes": {path: ".wide", fails: "more than the limit of 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(true, DefaultMaxRawLength)
			if c.limit > 0 {
				p.maxRaw = c.limit
			}
			got, err := p.value(object(t, deployment), c.path, jsonpath.NewBudget())
			assert.Equal(t, c.want, got)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
		})
	}
}

func TestFeedbackThatWouldFillTheMemoryIsAnError(t *testing.T) {
	var inner any = map[string]any{"x": "leaf"}
	for range 2000 {
		inner = map[string]any{"a": inner}
	}
	live := &unstructured.Unstructured{Object: map[string]any{"kind": "X", "spec": inner}}
	for name, c := range map[string]struct{ path, fails string }{
		"two descents":                     {"..a..a", "looks at more than 250000 values"},
		"the whole object again and again": {"..a", "more bytes than the limit of 1024"},
		"a path of any length":             {strings.Repeat(".a", 4096), "more than the limit of 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(true, DefaultMaxRawLength)
			_, err := p.value(live, c.path, jsonpath.NewBudget())
			require.ErrorContains(t, err, c.fails)
		})
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{
		"", ".status.replicas", ".status[", "..a", "[*]", "[0:1]", `.status.conditions[?(@.type=="A")].status`, "}{.a", "['a','b']",
		"[-1]", "[?(@)]", "range .a[*]", "end", "[0:0:0]", "[?(@.a<1)]", "$.a", "@", "[?(1==1)]", ".status.conditions[5]", "[::-1]",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	live := map[string]any{
		"status": map[string]any{
			"replicas": int64(2), "half": 0.5, "none": nil, "empty": []any{},
			"conditions": []any{map[string]any{"type": "A", "status": "True"}, map[string]any{"type": "B"}},
		},
		"list": []any{[]any{int64(1), "a"}, []any{}, nil, true},
	}
	f.Fuzz(func(t *testing.T, path string, raw bool) {
		p := New(raw, DefaultMaxRawLength)
		first, err := p.value(&unstructured.Unstructured{Object: live}, path, jsonpath.NewBudget())
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		again, err := p.value(&unstructured.Unstructured{Object: live}, path, jsonpath.NewBudget())
		require.NoError(t, err)
		assert.Equal(t, first, again, "the same again")
		if first != nil && first.JsonRaw != nil {
			assert.LessOrEqual(t, len(*first.JsonRaw), DefaultMaxRawLength)
		}
	})
}

func TestAPathIsParsedOnce(t *testing.T) {
	e := New(false, 0)
	for range 2 {
		_, err := e.parsed(".status.replicas")
		require.NoError(t, err)
		_, err = e.parsed("{")
		require.Error(t, err)
	}
	assert.Equal(t, 2, e.paths.Len(), "what cannot be parsed is remembered, too")
}
