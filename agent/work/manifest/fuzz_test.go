package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
)

// FuzzParseManifest reads manifests that anyone wrote: a manifest is decoded or says why not, what is sent for it means
// the same object again, without the fields of the API server, and an entry in the list of applied resources is its own.
func FuzzParseManifest(f *testing.F) {
	for _, seed := range []string{
		configMap, "{", "null", `{"kind":1}`, `{"metadata":[]}`, `{"kind":"L","items":[{}]}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","namespace":"ns","uid":"u","creationTimestamp":null}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns","managedFields":[{}]}}`,
		`{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":7,"generateName":"x"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","name":"y"},"items":[]}`,
	} {
		f.Add([]byte(seed))
	}
	kinds := mapper()
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := Parse(3, raw)
		assert.Equal(t, m.Decoded(), m.Err == nil, "what cannot be decoded says why, and nothing else does")
		assert.Equal(t, int32(3), m.Meta().Ordinal)
		spec := &workv1.ManifestWorkSpec{}
		for range 5 {
			spec.Workload.Manifests = append(spec.Workload.Manifests,
				workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		}
		unmapped := m
		if m.Decoded() {
			m.Resolve(kinds, spec, usable)
		}
		if !m.Mapped() || m.Err != nil {
			return
		}
		assert.True(t, m.CouldBe(m.Entry("uid")))
		assert.True(t, unmapped.CouldBe(m.Entry("uid")), "before its kind is known, too")
		checkSent(t, m, raw)

		twice := []Manifest{m, Parse(4, raw)}
		twice[1].Resolve(kinds, spec, usable)
		RefuseDuplicates(twice)
		require.NoError(t, twice[0].Err)
		require.Error(t, twice[1].Err, "two manifests of one object would undo each other")
	})
}

// checkSent parses what is sent for a manifest.
func checkSent(t *testing.T, m Manifest, raw []byte) {
	t.Helper()
	object, err := m.Object(raw)
	require.NoError(t, err)
	assert.Empty(t, object.GetUID())
	assert.Empty(t, object.GetManagedFields())
	created := object.GetCreationTimestamp()
	assert.True(t, created.IsZero())
	sent, err := object.MarshalJSON()
	require.NoError(t, err)
	again := Parse(3, sent)
	require.NoError(t, again.Err)
	assert.Equal(t, m.GVK, again.GVK)
	assert.Equal(t, m.Name, again.Name)
	assert.Equal(t, m.Namespace, again.Namespace)
	once, err := again.Object(sent)
	require.NoError(t, err)
	if m.Namespaced {
		assert.Equal(t, m.Namespace, object.GetNamespace())
		return
	}
	assert.Equal(t, object, once, "nothing more is left out")
}
