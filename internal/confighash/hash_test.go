package confighash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/confighash"
)

// Shows: hub/spec-hash
func TestSpecHash(t *testing.T) {
	tests := map[string]struct {
		object map[string]any
		want   string
	}{
		"identity and status do not count": {
			object: map[string]any{
				"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "n"}, "status": map[string]any{"a": "b"},
			},
			want: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		},
		"the data of a ConfigMap counts, with its characters escaped": {
			object: map[string]any{"data": map[string]any{"k": "a<b>&c"}},
			want:   "12c07be403742cdf504fc2ab9b38bc4f802fd3708cba3ce871bfcc61b11af563",
		},
		"an AddOnDeploymentConfig": {
			object: map[string]any{"spec": map[string]any{
				"agentInstallNamespace": "open-cluster-management-agent-addon",
				"customizedVariables":   []any{map[string]any{"name": "LOG_LEVEL", "value": "2"}},
			}},
			want: "61d7c46e8afd5066ea3c35766cff4c63d9b511ae03ced6980a89d8e4338a810d",
		},
		"numbers": {
			object: map[string]any{"spec": map[string]any{"n": int64(3), "f": 1.5, "big": 1e21}},
			want:   "1d74493fc31f4afb2919dd47cf863e9aee74bf99f93916d21785ac8113681240",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := confighash.SpecHash(&unstructured.Unstructured{Object: test.object})
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	got, err := confighash.SpecHash(nil)
	require.NoError(t, err)
	assert.Empty(t, got)
}
