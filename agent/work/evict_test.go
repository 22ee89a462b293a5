package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestTheEvictorLeavesAloneWhatItsWorkLetsGo has the cache of the cluster behind that of the hub.
func TestTheEvictorLeavesAloneWhatItsWorkLetsGo(t *testing.T) {
	applied := func(uid string) *workv1.AppliedManifestWork {
		return &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid)}}
	}
	for sentence, test := range map[string]struct {
		before func(r *Reconciler, ofWork *facts)
		cached string
		there  bool
	}{
		"nobody lets it go": {before: func(*Reconciler, *facts) {}, cached: "u", there: true},
		"the request is under way, or succeeded": {
			before: func(r *Reconciler, f *facts) { r.lettingGo(f, true) }, cached: "u",
		},
		"the request failed": {
			before: func(r *Reconciler, f *facts) { r.lettingGo(f, true); r.lettingGo(f, false) }, cached: "u", there: true,
		},
		"another one has its name": {
			before: func(r *Reconciler, f *facts) { r.lettingGo(f, true) }, cached: "v", there: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &evictor{&Reconciler{memory: newMemory(), Clock: clock.RealClock{}}}
			test.before(e.Reconciler, &facts{holder: holder{name: "w"}, applied: applied("u")})
			f := &facts{now: time.Now(), holder: holder{applied: true, name: "a"}, applied: applied(test.cached)}
			e.checkEvictionLag(f)
			assert.Equal(t, test.there, f.applied != nil)
			assert.False(t, f.stale)
		})
	}
	r := &Reconciler{memory: newMemory(), Clock: clock.RealClock{}}
	own := &facts{holder: holder{applied: true, name: "a"}, applied: applied("u")}
	r.memory.change(own.holder, func(k *recall) { k.blocked = 1 })
	r.lettingGo(own, true)
	r.lettingGo(own, false)
	assert.Equal(t, 1, r.memory.of(own.holder).blocked, "the evictor keeps its own notes")
}
