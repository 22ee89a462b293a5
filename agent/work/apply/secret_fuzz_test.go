package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply/merge"
	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/manifest"
)

const (
	// marker and markedNumber are what no error may say.
	marker       = "bWFya2VyLW9mLWEtc2VjcmV0"
	markedNumber = int64(48151623)
)

// mark puts the marker into each value of a manifest, but not into its keys and what names the object.
func mark(value any, path string) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			switch at := path + "." + key; at {
			case ".apiVersion", ".kind", ".metadata.name", ".metadata.namespace":
			default:
				value[key] = mark(inner, at)
			}
		}
		return value
	case []any:
		for i := range value {
			value[i] = mark(value[i], path)
		}
		return value
	case string:
		return marker
	case int64, float64:
		return markedNumber
	}
	return value
}

// FuzzSecretsAreNotTold reads manifests of Secrets, of whatever form, with a marker as each value: no error on the way to
// the API server has it. Errors end in statuses, Events and the log.
//
// Shows: work/secrets-untold
func FuzzSecretsAreNotTold(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"stringData":{"pin":"x"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"stringData":{"pin":1}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"stringData":{"pin":["x"]}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"stringData":"x"}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":"x"}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"pin":{"x":"y"}}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"p":"x"},"stringData":{"p":"x"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"ns","labels":"x"},"type":1,"immutable":"x"}`,
		`{"apiVersion":"v1","metadata":{"name":"s","namespace":"ns"},"data":{"pin":"x"}}`,
		`{"apiVersion":"v1","kind":"Secret","data":{"pin":"x"}}`,
		`{"apiVersion":"/v1","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"pin":"x"}}`,
		`{"apiVersion":"v2","kind":"Secret","metadata":{"name":"s","namespace":"ns"},"data":{"pin":"x"}}`,
	} {
		f.Add([]byte(seed), ".data.pin|keys")
		f.Add([]byte(seed), ".stringData[]|.[0]")
		f.Add([]byte(seed), ".data.pin.x")
	}
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	f.Fuzz(func(t *testing.T, raw []byte, path string) {
		content := map[string]any{}
		if json.Unmarshal(raw, &content) != nil || strings.Contains(path, marker) || strings.Contains(path, "48151623") {
			return
		}
		marked, err := json.Marshal(mark(content, ""))
		require.NoError(t, err)
		for _, err := range errorsAbout(t, kinds, marked, path) {
			assert.NotContains(t, err.Error(), marker)
			assert.NotContains(t, err.Error(), "48151623")
		}
	})
}

// errorsAbout takes a manifest through all that reads it before a request, and returns the errors.
func errorsAbout(t *testing.T, kinds meta.RESTMapper, raw []byte, path string) []error {
	t.Helper()
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	m := manifest.Parse(0, raw)
	add(m.Err)
	if !m.Decoded() || m.GVK.Kind != "Secret" {
		return errs
	}
	spec := &workv1.ManifestWorkSpec{}
	spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	m.Resolve(kinds, spec,
		func(_ schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
			return rules, nil
		})
	add(m.Err)
	desired, err := m.Object(raw)
	require.NoError(t, err)
	_, err = ssa.Configure(t.Context(), desired, nil)
	add(err)
	for _, fields := range []workv1.IgnoreField{
		{JQPathExpressions: []string{path}}, {JSONPaths: []string{path}},
		{JSONPointers: []string{strings.ReplaceAll(path, ".", "/")}},
	} {
		_, err = ssa.Configure(t.Context(), desired, &workv1.ServerSideApplyConfig{IgnoreFields: []workv1.IgnoreField{fields}})
		add(err)
	}
	kind := desired.Object["type"]
	if kind == nil {
		kind = "Opaque"
	}
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": kind, "data": map[string]any{"old": marker},
	}}
	_, _, err = merge.Into(live, desired, metav1.OwnerReference{}, true)
	add(err)
	return errs
}
