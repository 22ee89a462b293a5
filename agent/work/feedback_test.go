package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
)

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
			var p paths
			for range 2 { // compiled and remembered
				got, err := p.readFeedback(object(t, c.object), c.rules)
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
