package confighash_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/spokelet/spokelet/internal/confighash"
)

// packedOf packs an object of a kind that every hub knows, as a cache does.
func packedOf(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := confighash.Pack(u)
	require.NoError(t, err)
	packed, is := out.(*unstructured.Unstructured)
	require.True(t, is)
	return packed
}

// templateKind is the kind of AddOnTemplates.
func templateKind(t *testing.T) schema.GroupVersionKind {
	t.Helper()
	kind, known := confighash.Kind(confighash.Template())
	require.True(t, known)
	return kind
}

// FuzzAPackedConfigIsTheSame: what is packed has the hash of before, and its content once it is unpacked.
func FuzzAPackedConfigIsTheSame(f *testing.F) {
	for _, text := range []string{
		`{"spec":{"a":[{},{},1,1.5,1e21,"<&>\u2028",null,true]}}`, `{}`, `{"spec":null,"other":9007199254740993}`,
		`{"status":{"s":1},"spec":"text"}`, `{"packed":"{}"}`, `{"packed":1}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object := map[string]any{}
		if utiljson.Unmarshal([]byte(text), &object) != nil || object == nil {
			return // it is not a config
		}
		if _, taken := object["packed"].(string); taken {
			return // an API server keeps no such field
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(templateKind(t))
		u.Object["metadata"] = map[string]any{"name": "n", "annotations": map[string]any{"k": "v"}}
		before, err := confighash.SpecHash(u)
		require.NoError(t, err)
		small := packedOf(t, u)
		for sentence, one := range map[string]*unstructured.Unstructured{"packed": small, "packed twice": packedOf(t, small)} {
			hash, err := confighash.SpecHash(one)
			require.NoError(t, err)
			assert.Equal(t, before, hash, sentence)
			assert.Equal(t, u.GetAnnotations(), one.GetAnnotations(), sentence)
			assert.Len(t, one.Object, 4, sentence)
		}
		raw, err := json.Marshal(u.Object)
		require.NoError(t, err)
		read, err := confighash.PackJSON(raw)
		require.NoError(t, err)
		assert.Equal(t, small, read, "read from its JSON")
		encoded, err := confighash.Encode(small)
		require.NoError(t, err)
		again, err := confighash.PackJSON(encoded)
		require.NoError(t, err)
		assert.Equal(t, small, again, "read from what it is encoded to")
		assert.GreaterOrEqual(t, confighash.Weigh(small), confighash.Weigh(u))
		whole, err := confighash.Unpack(small)
		require.NoError(t, err)
		delete(u.Object, "status")
		want, err := json.Marshal(u.Object)
		require.NoError(t, err)
		got, err := json.Marshal(whole.Object)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
		assert.Len(t, small.Object, 4, "what belongs to a cache is not changed")
	})
}

func TestOnlyOurKindsArePacked(t *testing.T) {
	_, err := confighash.PackJSON([]byte(`{"spec":{"addonName":"a"}}`))
	require.EqualError(t, err, `a configuration of kind "" in "" cannot be packed`)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{}}}
	assert.Same(t, u, packedOf(t, u))
	whole, err := confighash.Unpack(u)
	require.NoError(t, err)
	assert.Same(t, u, whole)
}

func TestAPackedConfigThatIsNotJSONIsReported(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"packed": "{"}}
	u.SetGroupVersionKind(templateKind(t))
	u.SetName("n")
	_, err := confighash.Unpack(u)
	require.ErrorContains(t, err, "decoding AddOnTemplate /n")
}
