package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
)

// A few kilobytes of YAML can ask for more values than any memory holds. Each such expression is refused for itself.
func TestExpressionsWithoutBoundTakeNothingDown(t *testing.T) {
	t.Parallel()
	const depth = 500
	e := newEnv(t)
	e.allowWidgets()
	e.create(e.unstructuredOf(widgets, e.cluster))
	e.start()
	deep := func(name string) string {
		return fmt.Sprintf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: %[2]s, namespace: %[1]s}, spec: %[3]s}",
			e.cluster, name, strings.Repeat("{a: ", depth)+"{x: leaf}"+strings.Repeat("}", depth))
	}
	w := e.work("w", deep("path"), deep("jq"), deep("read"), e.configMap("sibling", nil))
	applied := func(name string, field workv1.IgnoreField) workv1.ManifestConfigOption {
		s := serverSide("", true)
		field.Condition = workv1.IgnoreFieldsConditionOnSpokePresent
		s.ServerSideApply.IgnoreFields = []workv1.IgnoreField{field}
		return workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: e.cluster + ".example", Resource: "widgets", Namespace: e.cluster, Name: name,
			},
			UpdateStrategy: ptr.To(s),
		}
	}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		applied("path", workv1.IgnoreField{JSONPaths: []string{".spec..a..a..a.x"}}),
		applied("jq", workv1.IgnoreField{JQPathExpressions: []string{"select([range(infinite)] == [])"}}),
		e.feedback(e.cluster+".example", "widgets", "read", workv1.FeedbackRule{
			Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
				{Name: "deep", Path: "..a..a..a"}, {Name: "name", Path: ".metadata.name"},
			},
		}),
	}
	e.create(w)
	e.applies(w, no, no, yes, yes)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message,
		"Failed to process ignoreFields: the JSON path \".spec..a..a..a.x\"")
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "looks at more than 250000 values")
	assert.Contains(t, manifestCondition(w, 1, workv1.ManifestApplied).Message, "not supported in ignoreFields")
	synced := meta.FindStatusCondition(w.Status.ResourceStatus.Manifests[2].Conditions, "StatusFeedbackSynced")
	require.NotNil(t, synced)
	assert.Contains(t, synced.Message, `value "deep": the JSON path "..a..a..a" looks at more than 250000 values`)
	require.Len(t, w.Status.ResourceStatus.Manifests[2].StatusFeedbacks.Values, 1)
}
