package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/watch"
)

// TestACopyThatWasBelievedTooEarlyIsLookedAtAgain is about a cache that has not seen the last write of a pass when its
// time is over: a pass on the older copy may find nothing to write, so the event of the write must wake the work.
func TestACopyThatWasBelievedTooEarlyIsLookedAtAgain(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", ResourceVersion: "7"}}
	after := before.DeepCopy()
	after.ResourceVersion = "8"
	after.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied}}
	for name, c := range map[string]struct {
		late  time.Duration
		stale bool
		wakes bool
	}{
		"within its time the cache is waited for, and our write is no news": {late: time.Second, stale: true},
		"after that the copy is believed, and our write is news":            {late: staleLimit + time.Second, wakes: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{parts: parts{notes: newNotes()}}
			f := &facts{now: now.Add(c.late), owner: watch.Owner{Name: "w"}, work: before}
			r.notes.change(f.owner, func(n *note) { n.work = written{uid: "u", version: "8", at: now} })
			r.checkLag(f)
			assert.Equal(t, c.stale, f.stale)
			assert.Equal(t, c.wakes, r.workTouched(before, after))
		})
	}
}

func TestLag(t *testing.T) {
	w := written{uid: "u", version: "10", at: epoch}
	assert.False(t, written{}.lag("u", "1", false, epoch))
	assert.True(t, w.lag("u", "9", false, epoch))
	assert.False(t, w.lag("u", "10", false, epoch))
	assert.True(t, w.lag("", "", false, epoch), "the cache does not know it yet")
	assert.False(t, w.lag("other", "1", false, epoch))
	assert.False(t, w.lag("u", "9", false, epoch.Add(staleLimit+1)), "not forever")
	w.deleting = true
	assert.True(t, w.lag("u", "11", false, epoch))
	assert.False(t, w.lag("u", "11", true, epoch))
}

// TestAWorkThatIsMissingLaterHasItsGrace has a work without a status: it was created just before the hub went away, and
// the hub comes back from a backup without it.
//
// Shows: work/created-meanwhile
func TestAWorkThatIsMissingLaterHasItsGrace(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	created := note{created: "u", createdAt: at}
	assert.Equal(t, types.UID("u"), created.justCreated(at.Add(10*time.Second)), "it vanished while it got its finalizer")
	assert.Empty(t, created.justCreated(at.Add(10*time.Minute)), "the evictor has it, with its grace period")
	assert.Empty(t, note{}.justCreated(at), "nothing was created")
}
