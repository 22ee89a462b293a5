package offline

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// cipherWith returns a cipher with a key of one repeated byte.
func cipherWith(tb testing.TB, b byte) cipher.AEAD {
	tb.Helper()
	aead, err := newAEAD(bytes.Repeat([]byte{b}, keySize))
	require.NoError(tb, err)
	return aead
}

// copiedWork returns a work with the fields that a copy has.
func copiedWork(name string, generation int64, manifests ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster1", Name: name, UID: "uid-of-work", Generation: generation, Labels: map[string]string{"l": "1"},
	}}
	w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	for _, raw := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, manifestOf([]byte(raw)))
	}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Name: "a"},
		Conditions: []metav1.Condition{
			{Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation},
		},
	}}
	return w
}

// manifestOf returns the manifest with these bytes.
func manifestOf(raw []byte) workv1.Manifest {
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// configMap is a manifest.
const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`

// headerFor returns the header of the copy of a work.
func headerFor(w *workv1.ManifestWork, applied types.UID) header {
	return (&Store{Config: Config{HubHash: "hub", Cluster: "cluster1"}}).headerOf(w, applied)
}

// sealed returns the file of a work.
func sealed(tb testing.TB, aead cipher.AEAD, w *workv1.ManifestWork) []byte {
	tb.Helper()
	file, err := encode(aead, headerFor(w, "uid-of-applied"), w)
	require.NoError(tb, err)
	return file
}

func TestACopyIsTheWork(t *testing.T) {
	aead := cipherWith(t, 1)
	w := copiedWork("w", 7, `{"b": 1,  "a":"<&>"}`, ``, `not even JSON`)
	file := sealed(t, aead, w)
	head, read, err := decode(aead, file)
	require.NoError(t, err)
	assert.Equal(t, headerFor(w, "uid-of-applied"), head)
	assert.Equal(t, w.ObjectMeta, read.ObjectMeta)
	assert.Equal(t, w.Status, read.Status)
	assert.Equal(t, w.Spec.DeleteOption, read.Spec.DeleteOption)
	require.Len(t, read.Spec.Workload.Manifests, 3)
	for i := range w.Spec.Workload.Manifests {
		assert.Equal(t, string(w.Spec.Workload.Manifests[i].Raw), string(read.Spec.Workload.Manifests[i].Raw),
			"every byte, for objects are recognized by them")
	}
	assert.NotContains(t, string(file), "<&>", "nobody reads manifests without the key")
	assert.NotEqual(t, file, sealed(t, aead, w), "the same is never sealed the same")
}

func TestACopyThatIsNotWholeIsRefused(t *testing.T) {
	aead := cipherWith(t, 1)
	file := sealed(t, aead, copiedWork("w", 7, configMap))
	edit := func(change func([]byte) []byte) []byte { return change(bytes.Clone(file)) }
	for sentence, c := range map[string]struct {
		file []byte
		says string
	}{
		"an empty file":         {nil, "no copy of a work"},
		"a file of another one": {[]byte("apiVersion: v1 kind: ConfigMap"), "no copy of a work"},
		"a newer format":        {edit(func(f []byte) []byte { f[len(magic)]++; return f }), "newer format"},
		"an unknown format":     {edit(func(f []byte) []byte { f[len(magic)] = 0; return f }), "unknown format 0"},
		"a header that is longer than the file": {edit(func(f []byte) []byte {
			binary.BigEndian.PutUint32(f[len(magic)+1:], maxHeader)
			return f
		}), "header is cut off"},
		"a header that is longer than headers are": {edit(func(f []byte) []byte {
			binary.BigEndian.PutUint32(f[len(magic)+1:], 1<<31)
			return append(f, make([]byte, maxHeader)...)
		}), "header is cut off"},
		"a header that is no header": {edit(func(f []byte) []byte { f[fixedSize] = 'x'; return f }), "header cannot be read"},
		"a file that is cut off":     {file[:len(file)-1], "damaged"},
		"a file that ends early":     {file[:len(file)-len(file)/2], ""},
		"one bit":                    {edit(func(f []byte) []byte { f[len(f)-30] ^= 1; return f }), "damaged"},
		"another hub in the header":  {bytes.Replace(file, []byte(`"hub":"hub"`), []byte(`"hub":"bub"`), 1), "damaged"},
		"another generation":         {bytes.Replace(file, []byte(`"generation":7`), []byte(`"generation":8`), 1), "damaged"},
		"another work": {
			bytes.Replace(file, []byte(`"work":"w"`), []byte(`"work":"v"`), 1), "damaged",
		},
		"a file that is too large": {append(bytes.Clone(file), make([]byte, maxFile)...), "more than a copy may have"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, read, err := decode(aead, c.file)
			require.ErrorContains(t, err, c.says)
			assert.Nil(t, read)
		})
	}
	t.Run("a header alone", func(t *testing.T) {
		for size, says := range map[int]string{0: "header cannot be read", 2: "damaged", maxHeader: "damaged"} {
			head := `{"work":"` + strings.Repeat("w", max(size-11, 0)) + `"}`
			if size < len(head) {
				head = "{}"[:size]
			}
			alone := binary.BigEndian.AppendUint32(append([]byte(magic), formatVersion), uint32(size))
			_, _, err := decode(aead, append(alone, head...))
			require.ErrorContains(t, err, says, "a header of %d bytes", size)
		}
		_, _, err := decode(aead, append([]byte(magic), formatVersion, 0, 0, 0))
		require.ErrorContains(t, err, "no copy of a work")
	})
	t.Run("a file of the greatest size", func(t *testing.T) {
		room := maxFile - len(sealed(t, aead, copiedWork("w", 7, strings.Repeat("x", 1<<20)))) + 1<<20
		// The length of a part takes one byte more from 2 MiB on.
		file := sealed(t, aead, copiedWork("w", 7, strings.Repeat("x", room-1)))
		assert.Len(t, file, maxFile)
		_, _, err := decode(aead, file)
		require.NoError(t, err)
		_, _, err = decode(aead, append(file, 0))
		require.ErrorContains(t, err, "more than a copy may have")
		w := copiedWork("w", 7, strings.Repeat("x", room))
		_, err = encode(aead, headerFor(w, "uid-of-applied"), w)
		require.ErrorContains(t, err, "it has 8388609 bytes, more than a copy may have")
	})
	t.Run("a header that is too long", func(t *testing.T) {
		w := copiedWork(strings.Repeat("w", maxHeader), 7)
		_, err := encode(aead, headerFor(w, "x"), w)
		require.ErrorContains(t, err, "more than a copy may have")
	})
	t.Run("another key", func(t *testing.T) {
		_, _, err := decode(cipherWith(t, 2), file)
		require.ErrorContains(t, err, "of another key")
	})
	t.Run("a key that is none", func(t *testing.T) {
		_, err := newAEAD([]byte("short"))
		require.ErrorContains(t, err, "5 bytes, not 32")
	})
	t.Run("a work that is too large is not copied", func(t *testing.T) {
		w := copiedWork("w", 7, string(make([]byte, maxFile)))
		_, err := encode(aead, headerFor(w, "x"), w)
		require.ErrorContains(t, err, "more than a copy may have")
	})
}

func TestTheEssenceOfAStatusIsWhatDecides(t *testing.T) {
	value := workv1.FieldValue{Type: workv1.Integer}
	status := workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{{Type: workv1.WorkApplied, Status: "True"}, {Type: workv1.WorkComplete, Status: "True"}},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{Name: "v", Value: value}}},
			Conditions: []metav1.Condition{
				{Type: workv1.ManifestAvailable, Status: "True"},
				{Type: workv1.ManifestApplied, Status: "True", Message: "m", LastTransitionTime: metav1.Unix(1, 0)},
			},
		}}},
	}
	assert.Equal(t, workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{{Type: workv1.WorkComplete, Status: "True"}},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: "True"}},
		}}},
	}, reduceStatus(&status))
}
