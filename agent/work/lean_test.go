package work

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
)

// lean is a reconciler that can read works and nothing else.
func lean() *Reconciler {
	return &Reconciler{mapper: mapper(), memory: newMemory()}
}

// workOf is the facts about a work with the manifests, in its first generation.
func workOf(raws ...[]byte) *facts {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", Generation: 1}}
	for _, raw := range raws {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: kruntime.RawExtension{Raw: raw}})
	}
	return &facts{holder: holder{name: "w"}, work: w}
}

// TestASpecIsReadOnce puts bytes that nobody can decode in the place of a manifest that was read: while its generation
// is the same, nothing notices, neither the reading of the work nor the pass over an object that is as it should be.
// Weakness: W43
func TestASpecIsReadOnce(t *testing.T) {
	r := lean()
	first := r.readManifests(workOf([]byte(configMap("x"))))
	require.NoError(t, first[0].err)
	broken := workOf([]byte("{"))
	again := r.readManifests(broken)
	assert.Equal(t, first, again)

	owner := ownerReference("applied", "a")
	one := &task{manifest: &again[0], raw: []byte("{"), owner: owner}
	one.prior = record{exists: true, uid: "x", wish: one.wish, reads: one.reads, owner: owner.UID}
	// There is no API server behind this applier.
	res, _, noted := (&applier{}).apply(t.Context(), one)
	require.NoError(t, res.err)
	assert.Equal(t, presencePresent, res.presence)
	assert.False(t, noted)

	broken.work.Generation = 2
	require.Error(t, r.readManifests(broken)[0].err, "a new generation is read")
	other := workOf([]byte("{"))
	other.work.UID = "another"
	assert.Error(t, r.readManifests(other)[0].err, "and so is another work of the same name")
}

// TestTheBytesOfManifestsAreNotKept lets a work go from the cache: what the process remembers of it must not keep its
// manifests, however large they are.
// Weakness: W43
func TestTheBytesOfManifestsAreNotKept(t *testing.T) {
	r := lean()
	kept := func() weak.Pointer[byte] {
		raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"},"data":{"k":"` +
			strings.Repeat("x", 64<<10) + `"}}`)
		require.NoError(t, r.readManifests(workOf(raw))[0].err)
		return weak.Make(&raw[0])
	}()
	// What a pass makes of the bytes goes at the next collection, what is referred to stays for ever.
	runtime.GC()
	assert.Nil(t, kept.Value())
	assert.Len(t, r.memory.of(holder{name: "w"}).manifests, 1)
	runtime.KeepAlive(r)
}

// TestTheLedgerIsUsedByManyAtOnce lets works come and go while the watches speak of their objects.
// Row: work 6.1 AP TestCache, TestCurrentReadWriteCache
func TestTheLedgerIsUsedByManyAtOnce(t *testing.T) {
	l := newLedger(func(holder) {}, func() {})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			h := holder{name: fmt.Sprint("w", i/2)}
			for round := range 200 {
				l.claim(h, claims("shared", h.name), nil)
				l.see(thing("shared"), sighting{version: fmt.Sprint(round), uid: "u"})
				known, _ := l.look(h, thing("shared"))
				known.exists, known.version = true, fmt.Sprint(round)
				l.note(h, thing("shared"), known)
				l.listed(cmWatch(), nil, fmt.Sprint(round))
				l.claim(h, nil, nil)
			}
		})
	}
	all.Wait()
	assert.Empty(t, l.objects)
	assert.Empty(t, l.holders)
	assert.Empty(t, l.watched)
}
