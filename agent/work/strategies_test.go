package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/feedback"
)

// Weakness: W39
// Row: work 6.1 MC TestUpdateStrategy, TestServerSideApplyConflict
func TestUnknownStrategyIsTold(t *testing.T) {
	m := &manifest{
		gvk:      schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "n", name: "a",
		option: option{strategy: workv1.UpdateStrategy{Type: "Sometimes"}}, wish: wish{content: digest{1}},
	}
	a := &applier{spoke: spoke{client: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}, evaluator: feedback.New(false, 0)}
	raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`)
	live, err := a.settle(t.Context(), &task{manifest: m, raw: raw, owner: metav1.OwnerReference{UID: "u"}})
	assert.Nil(t, live)
	var refused *failure
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, workv1.AppliedManifestFailed, refused.reason)
	assert.Contains(t, err.Error(), `the update strategy "Sometimes" is unknown`)
}

func TestLooksFirst(t *testing.T) {
	wanted := wish{content: digest{1}}
	for name, c := range map[string]struct {
		task task
		want bool
	}{
		"a new object is applied at once":       {task{}, false},
		"a new manifest is, too":                {task{expected: true, prior: record{wish: wish{content: digest{2}}}}, false},
		"an object that was disturbed is read":  {task{heard: newsChanged, prior: record{wish: wanted}}, true},
		"one that is gone is applied at once":   {task{heard: newsGone, prior: record{wish: wanted}}, false},
		"so is one that was refused":            {task{heard: newsChanged, prior: record{wish: wanted, failure: &failure{}}}, false},
		"after a restart it is read":            {task{expected: true, current: true}, true},
		"unless the hub does not say applied":   {task{expected: true}, false},
		"when fields are ignored, it is always": {task{configuration: &ssa.Configuration{Ignores: true}}, true},
		"and when an executor tries the write":  {task{trial: &trial{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.task.manifest = &manifest{wish: wanted}
			if c.task.configuration == nil {
				c.task.configuration = &ssa.Configuration{}
			}
			assert.Equal(t, c.want, c.task.looksFirst())
		})
	}
}
