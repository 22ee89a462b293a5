package offline

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzDecodeCopy reads files that anybody wrote: none is taken for a copy, and none takes the agent down.
func FuzzDecodeCopy(f *testing.F) {
	aead := cipherWith(f, 1)
	good := sealed(f, aead, copiedWork("w", 7, configMap))
	other := sealed(f, cipherWith(f, 2), copiedWork("w", 7, configMap))
	for _, seed := range [][]byte{nil, []byte(magic), good[:len(good)-1], good[:fixedSize], other, append(good, 0)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_, work, err := decode(aead, file)
		require.Error(t, err)
		assert.Nil(t, work)
	})
}

// FuzzDecodeParts reads parts that a faulty agent sealed.
func FuzzDecodeParts(f *testing.F) {
	aead := cipherWith(f, 1)
	for _, seed := range [][]byte{
		nil, {0}, {2, '{', '}'}, {2, '{', '}', 0}, {2, '{', '}', 200}, {2, '{', '}', 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
		append([]byte{13}, `{"spec":null}`...),
	} {
		f.Add(seed)
	}
	head := append([]byte(magic), formatVersion, 0, 0, 0, 2, '{', '}')
	f.Fuzz(func(t *testing.T, parts []byte) {
		_, work, err := decode(aead, append(bytes.Clone(head), aead.Seal(nil, nil, parts, head)...))
		if err != nil {
			assert.Nil(t, work)
			return
		}
		size := 0
		for i := range work.Spec.Workload.Manifests {
			size += len(work.Spec.Workload.Manifests[i].Raw)
		}
		assert.LessOrEqual(t, size, len(parts))
	})
}

// FuzzCopy makes copies of works with any manifests: a copy is the work, byte by byte, and a copy in which one byte
// changed, or which ends early, is none.
func FuzzCopy(f *testing.F) {
	aead := cipherWith(f, 1)
	f.Add("w", int64(7), []byte(configMap+"\x00"+configMap), 3, byte(1))
	f.Add("w", int64(-1), []byte("\x00\x00"), fixedSize, byte(0x80))
	f.Add("a.b", int64(1<<62), bytes.Repeat([]byte("x"), 300), 310, byte(255))
	f.Fuzz(func(t *testing.T, name string, generation int64, manifests []byte, at int, change byte) {
		if !utf8.ValidString(name) || len(name) > 253 {
			return // No object has such a name.
		}
		work := copiedWork(name, generation)
		for raw := range bytes.SplitSeq(manifests, []byte{0}) {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, manifestOf(raw))
		}
		file := sealed(t, aead, work)
		head, read, err := decode(aead, file)
		require.NoError(t, err)
		assert.Equal(t, headerFor(work, "uid-of-applied"), head)
		assert.Equal(t, work.ObjectMeta, read.ObjectMeta)
		require.Len(t, read.Spec.Workload.Manifests, len(work.Spec.Workload.Manifests))
		for i, m := range work.Spec.Workload.Manifests {
			assert.True(t, bytes.Equal(m.Raw, read.Spec.Workload.Manifests[i].Raw), "manifest %d", i)
		}
		if at = int(uint(at) % uint(len(file))); change == 0 {
			change = 1
		}
		_, read, err = decode(aead, file[:at])
		require.Error(t, err)
		assert.Nil(t, read)
		file[at] ^= change
		_, read, err = decode(aead, file)
		require.Error(t, err)
		assert.Nil(t, read)
	})
}
