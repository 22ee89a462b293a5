package prune

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// firstCheck is when an object whose deletion was requested is read again if no event says that it went; each later
	// check waits checkGrowth times as long as the deletion has lasted, up to lastCheck.
	firstCheck  = time.Second
	checkGrowth = 2
	lastCheck   = 5 * time.Minute
	// overdueAfter is how long a deletion may take before its work counts as blocked.
	overdueAfter = 5 * time.Second
)

// verb is what is done with one tracked object that no manifest means (docs/reference/work.md, "Deletion of objects").
type verb int

const (
	// verbDrop removes the entry from the list and sends nothing.
	verbDrop verb = iota
	// verbOrphan removes our owner reference from the object and then the entry from the list.
	verbOrphan
	// verbWait keeps the entry: the object is being deleted.
	verbWait
	// verbDelete deletes the object and keeps the entry.
	verbDelete
)

// decide returns what is done with an entry whose live object was read; live is nil when there is none. An entry
// without UID is an intent: there only the owner reference shows that the object is ours. No pass may have orphaned yet
// what the work orphans. The API server may serve one object under two groups, and the entry of one must not delete the
// object of the other, which a manifest means.
func (r *Request) decide(entry workv1.AppliedManifestResourceMeta, live metav1.Object) verb {
	if live == nil || r.Applied[live.GetUID()] {
		return verbDrop
	}
	ours, others := inventory.Owners(live, r.UID)
	switch {
	case !ours:
		return verbDrop
	case others, r.Orphaned(manifest.IDOf(entry)):
		return verbOrphan
	case entry.UID != "" && entry.UID != string(live.GetUID()):
		return verbDrop
	case live.GetDeletionTimestamp() != nil:
		return verbWait
	}
	return verbDelete
}

// goingSince is since when a live object should have gone: when its deletion was requested, or when its grace period
// ends. Where this process requested the deletion, that is by its own clock. Otherwise only the API server knows, whose
// clock may be off; it can be no later than the grace period from now.
func goingSince(known *watch.Deletion, live metav1.Object, now time.Time) time.Time {
	if known != nil && known.Requested {
		return known.Since
	}
	return reconcile.Earliest(live.GetDeletionTimestamp().Time, now.Add(graceOf(live)))
}

// nextCheck is when an object that should have gone since the given instant is read again without an event. Within a
// grace period that is its end: the object goes no later, and an event reports if it goes before.
func nextCheck(since, now time.Time) time.Time {
	pause := min(max(checkGrowth*now.Sub(since), firstCheck), lastCheck)
	if left := since.Sub(now); left > pause {
		pause = min(left, lastCheck)
	}
	return now.Add(pause)
}
