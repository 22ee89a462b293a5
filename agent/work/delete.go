package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// width is how many objects of one work are worked on at the same time.
	width = 8
	// firstLook is when an object that was told to go is looked at if no watch said that it went; each further look
	// takes lookGrowth times as long as the object has been going, up to lastLook.
	firstLook  = time.Second
	lookGrowth = 2
	lastLook   = 5 * time.Minute
)

// verdict is what the decision table says about one tracked object that is to go (work contract, section 4.4).
type verdict int

const (
	// verdictForget takes the entry from the list and leaves the object alone, if there is one.
	verdictForget verdict = iota
	// verdictDisown takes our owner reference from the object and then the entry from the list.
	verdictDisown
	// verdictWait keeps the entry: the object is going.
	verdictWait
	// verdictDelete deletes the object and keeps the entry.
	verdictDelete
)

// judge decides about an entry whose live object was read; live is nil when there is none. An entry without UID is an
// intent: there the owner reference alone says that the object is ours.
func judge(entry workv1.AppliedManifestResourceMeta, owner types.UID, live metav1.Object) verdict {
	if live == nil {
		return verdictForget
	}
	ours, others := owners(live, owner)
	switch {
	case !ours:
		return verdictForget
	case others:
		return verdictDisown
	case entry.UID != "" && entry.UID != string(live.GetUID()):
		return verdictForget
	case live.GetDeletionTimestamp() != nil:
		return verdictWait
	}
	return verdictDelete
}

// drainer deletes tracked objects.
type drainer struct {
	spoke  spoke
	ledger *ledger
}

// drained says what is left after deleting.
type drained struct {
	// pending are the entries that must stay listed, as they were.
	pending []workv1.AppliedManifestResourceMeta
	// blockers say for a person what is known to hold them.
	blockers []string
	// wake is when to look again, should no event come.
	wake time.Time
	// err joins what failed; the entries concerned are pending.
	err error
}

// drain tells the objects of the entries to go, as far as they belong to the AppliedManifestWork with the UID owner,
// and returns what is not gone yet. The holder must have claimed them.
func (d *drainer) drain(ctx context.Context, h holder, owner types.UID, now time.Time,
	entries []workv1.AppliedManifestResourceMeta,
) drained {
	var mu sync.Mutex
	var left drained
	group := errgroup.Group{}
	group.SetLimit(width)
	for _, entry := range entries {
		group.Go(func() error {
			rec, pending, err := d.dismiss(ctx, h, owner, now, entry)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				left.err = errors.Join(left.err, err)
			}
			if !pending && err == nil {
				return nil
			}
			left.pending = append(left.pending, entry)
			left.wake = reconcile.Earliest(left.wake, rec.look)
			if len(rec.blockers) > 0 {
				left.blockers = append(left.blockers, blocker(entry, rec.blockers))
			}
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(left.pending, compareEntries)
	slices.Sort(left.blockers)
	return left
}

// dismiss makes one object go, with as few requests as its record allows, and tells whether its entry must stay.
func (d *drainer) dismiss(ctx context.Context, h holder, owner types.UID, now time.Time,
	entry workv1.AppliedManifestResourceMeta,
) (record, bool, error) {
	id, resource := entryIdentity(entry), entryResource(entry)
	rec, heard := d.ledger.look(h, id)
	if heard == newsGone {
		return rec, false, nil
	}
	if rec.deleting && heard == newsNone && now.Before(rec.look) {
		return rec, true, nil
	}
	if heard == newsNone && !rec.deleting && rec.sole && rec.exists &&
		(entry.UID == "" || entry.UID == string(rec.uid)) {
		err := d.spoke.remove(ctx, resource, id, rec.uid, rec.version)
		if !apierrors.IsConflict(err) {
			return d.dismissed(h, id, rec, now, err)
		}
	}
	live, err := d.spoke.get(ctx, resource, id)
	if err != nil {
		return rec, true, err
	}
	if live == nil {
		return rec, false, nil
	}
	base := rec.base
	rec = record{
		base: base, checked: now, exists: true, version: live.GetResourceVersion(), uid: live.GetUID(),
		generation: live.GetGeneration(), meta: fingerprint(live),
	}
	switch judge(entry, owner, live) {
	case verdictDisown:
		mine := slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == owner
		})
		_, err := d.spoke.setOwners(ctx, resource, id, live, mine)
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return rec, false, err
	case verdictWait:
		rec.deleting, rec.blockers = true, live.GetFinalizers()
		rec.look = nextLook(live.GetDeletionTimestamp().Time, now)
		d.ledger.note(h, id, rec)
		return rec, true, nil
	case verdictDelete:
		log.FromContext(ctx).V(1).Info("deleting", "object", id.String())
		return d.dismissed(h, id, rec, now, d.spoke.remove(ctx, resource, id, live.GetUID(), ""))
	case verdictForget:
	}
	return rec, false, nil
}

// dismissed notes the answer to a delete request.
func (d *drainer) dismissed(h holder, id identity, rec record, now time.Time, err error) (record, bool, error) {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return rec, false, nil
	case err != nil:
		return rec, true, fmt.Errorf("deleting %s: %w", id, err)
	}
	rec.deleting, rec.wish, rec.look = true, digest{}, now.Add(firstLook)
	d.ledger.note(h, id, rec)
	return rec, true, nil
}

// nextLook is when an object that has been going since the given instant is looked at again without an event.
func nextLook(since, now time.Time) time.Time {
	pause := min(max(lookGrowth*now.Sub(since), firstLook), lastLook)
	return now.Add(pause)
}
