package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/watch"
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
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true) }, cached: "u",
		},
		"the request failed": {
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true); r.announceGone(f, false) }, cached: "u", there: true,
		},
		"another one has its name": {
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true) }, cached: "v", there: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &evictor{&Reconciler{parts: parts{notes: newNotes()}, Clock: clock.RealClock{}}}
			test.before(e.Reconciler, &facts{owner: watch.Owner{Name: "w"}, applied: applied("u")})
			f := &facts{now: time.Now(), owner: watch.Owner{Applied: true, Name: "a"}, applied: applied(test.cached)}
			e.checkEvictionLag(f)
			assert.Equal(t, test.there, f.applied != nil)
			assert.False(t, f.stale)
		})
	}
	r := &Reconciler{parts: parts{notes: newNotes()}, Clock: clock.RealClock{}}
	own := &facts{owner: watch.Owner{Applied: true, Name: "a"}, applied: applied("u")}
	r.notes.change(own.owner, func(n *note) { n.blocked = 1 })
	r.announceGone(own, true)
	r.announceGone(own, false)
	assert.Equal(t, 1, r.notes.of(own.owner).blocked, "the evictor keeps its own notes")
}
