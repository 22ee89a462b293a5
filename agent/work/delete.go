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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// DefaultOrderPatience is how long an object that does not go holds up the deletion of those that are deleted after
	// it.
	DefaultOrderPatience = 5 * time.Minute
	// width is how many objects of one work are worked on at the same time.
	width = 8
	// firstLook is when an object that was told to go is looked at if no watch said that it went; each further look
	// takes lookGrowth times as long as the object has been going, up to lastLook.
	firstLook  = time.Second
	lookGrowth = 2
	lastLook   = 5 * time.Minute
	// blockedAfter is how long an object may take to go before its work counts as held up.
	blockedAfter = 5 * time.Second
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
// intent: there the owner reference alone says that the object is ours. spared tells that the work orphans the object,
// which no pass may have done yet. applied are the objects of the manifests of this pass: the API server may serve one
// object under two groups, and the entry of the one does not delete what the other one wants.
func judge(entry workv1.AppliedManifestResourceMeta, owner types.UID, live metav1.Object, spared bool,
	applied map[types.UID]bool,
) verdict {
	if live == nil || applied[live.GetUID()] {
		return verdictForget
	}
	ours, others := owners(live, owner)
	switch {
	case !ours:
		return verdictForget
	case others, spared:
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
	mapper meta.RESTMapper
	counts *counters
	// patience is how long an object that does not go holds up the ranks after its own.
	patience time.Duration
}

// exempt says which objects are not deleted.
type exempt struct {
	// orphaned reports whether an object only loses its owner.
	orphaned func(identity) bool
	// applied are the objects that manifests mean; their entries are forgotten.
	applied map[types.UID]bool
}

// draining is one pass of a drainer over the entries of one holder.
type draining struct {
	*drainer
	holder holder
	// owner is the UID of the AppliedManifestWork to which the objects belong.
	owner types.UID
	now   time.Time
	not   exempt

	mu sync.Mutex
	// versions looks up, once in a pass, the version that took the place of one that is not served any more.
	versions map[schema.GroupVersionResource]func() (string, error)
}

// begin starts a pass.
func (d *drainer) begin(h holder, owner types.UID, now time.Time, not exempt) *draining {
	return &draining{
		drainer: d, holder: h, owner: owner, now: now, not: not,
		versions: map[schema.GroupVersionResource]func() (string, error){},
	}
}

// drained says what is left after deleting.
type drained struct {
	// pending are the entries that must stay listed, as they were: those of held and next.
	pending []workv1.AppliedManifestResourceMeta
	// held are the objects that were told to go and did not yet, or could not be told.
	held []hold
	// next are the objects whose turn has not come.
	next []workv1.AppliedManifestResourceMeta
	// wake is when to look again, should no event come.
	wake time.Time
	// err joins what failed; the entries concerned are pending.
	err error
}

// hold is one object that is still there although it was told to go.
type hold struct {
	entry workv1.AppliedManifestResourceMeta
	// since is when it was told to go, or could first not be told.
	since time.Time
	// finalizers are those that were seen to hold it.
	finalizers []string
	// because is what else is known about why it is still there.
	because string
}

// holdsUntil is when what is left stops to hold up the ranks after it: patience after the last of it was told to go.
// It is zero when nothing is left.
func (l *drained) holdsUntil(patience time.Duration) time.Time {
	var until time.Time
	for _, h := range l.held {
		if end := h.since.Add(patience); end.After(until) {
			until = end
		}
	}
	return until
}

// drain tells the objects of the entries to go, as far as they belong to the AppliedManifestWork with the UID owner,
// and returns what is not gone yet. The holder must have claimed them. They go rank by rank in the reverse of the order
// in which they were applied, those of one rank at once. A rank begins when the one before it is gone; one that does
// not go holds up the others for the patience, so that an object with a finalizer that nobody removes does not keep
// what has nothing to do with it for ever. What is exempt stays.
func (d *drainer) drain(ctx context.Context, h holder, owner types.UID, now time.Time,
	entries []workv1.AppliedManifestResourceMeta, not exempt,
) drained {
	var left drained
	pass := d.begin(h, owner, now, not)
	queue := deletionOrder(entries)
	for len(queue) > 0 {
		if until := left.holdsUntil(d.patience); now.Before(until) {
			left.next = queue
			left.wake = reconcile.Earliest(left.wake, until)
			break
		}
		end := rankEnd(queue)
		pass.drainRank(ctx, queue[:end], &left)
		queue = queue[end:]
	}
	for _, held := range left.held {
		left.pending = append(left.pending, held.entry)
		if due := held.since.Add(blockedAfter); now.Before(due) {
			left.wake = reconcile.Earliest(left.wake, due)
		}
	}
	left.pending = append(left.pending, left.next...)
	slices.SortFunc(left.pending, compareEntries)
	return left
}

// drainRank tells the objects of one rank to go, several at a time, and adds what is not gone to left.
func (d *draining) drainRank(ctx context.Context, rank []workv1.AppliedManifestResourceMeta, left *drained) {
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(width)
	for _, entry := range rank {
		group.Go(func() error {
			var rec record
			pending, err := true, error(nil)
			if fault := contain(ctx, entryIdentity(entry).String(), func() {
				rec, pending, err = d.dismiss(ctx, entry)
			}); fault != nil {
				rec, _ = d.ledger.look(d.holder, entryIdentity(entry))
				err = fault
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				left.err = errors.Join(left.err, err)
				rec = d.failed(entryIdentity(entry), rec, err)
			case !pending:
				return nil
			}
			left.wake = reconcile.Earliest(left.wake, rec.look)
			left.held = append(left.held, hold{
				entry: entry, since: rec.since, finalizers: rec.blockers, because: rec.because,
			})
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(left.held, func(a, b hold) int { return compareEntries(a.entry, b.entry) })
}

// failed notes that an object could not be told to go, and since when.
func (d *draining) failed(id identity, rec record, err error) record {
	if rec.because == "" || rec.since.IsZero() {
		rec.since = d.now
	}
	rec.because = "cannot be deleted: " + tellable(err)
	d.ledger.note(d.holder, id, rec)
	return rec
}

// tellable is an error as a condition tells it: what the API server said, but not how the wire broke, for that reads
// differently each time.
func tellable(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	if fault := (*failure)(nil); errors.As(err, &fault) {
		return fault.message
	}
	return "the API server did not answer"
}

// dismiss makes one object go, and reports whether its entry must stay. Where the version of the entry is not served
// any more, the object is spoken of in one that is.
func (d *draining) dismiss(ctx context.Context, entry workv1.AppliedManifestResourceMeta) (record, bool, error) {
	rec, pending, err := d.dismissAt(ctx, entry)
	if !kindGone(err) {
		return rec, pending, err
	}
	version, err := d.servedVersion(ctx, entryResource(entry))
	if err != nil || version == "" {
		return rec, err != nil, err
	}
	entry.Version = version
	return d.dismissAt(ctx, entry)
}

// dismissAt is dismiss in the version of the entry, with as few requests as the record of the object allows.
func (d *draining) dismissAt(ctx context.Context, entry workv1.AppliedManifestResourceMeta) (record, bool, error) {
	id, resource, now, not := entryIdentity(entry), entryResource(entry), d.now, d.not
	spared := not.orphaned(id)
	rec, heard := d.ledger.look(d.holder, id)
	if heard == newsGone || not.applied[types.UID(entry.UID)] {
		return rec, false, nil
	}
	if rec.deleting && heard == newsNone && now.Before(rec.look) {
		return rec, true, nil
	}
	if heard == newsNone && !rec.deleting && rec.sole && rec.exists && !spared && !not.applied[rec.uid] &&
		(entry.UID == "" || entry.UID == string(rec.uid)) {
		gone, err := d.spoke.retire(ctx, resource, id, rec.uid, rec.version)
		if !apierrors.IsConflict(err) {
			return d.dismissed(id, rec, gone, err)
		}
	}
	live, err := d.spoke.get(ctx, resource, id)
	if err != nil {
		return rec, true, err
	}
	if live == nil {
		return rec, false, nil
	}
	rec = record{
		base: rec.base, checked: now, exists: true, version: live.GetResourceVersion(), uid: live.GetUID(),
		generation: live.GetGeneration(), meta: fingerprint(live), since: rec.since, because: rec.because,
	}
	switch judge(entry, d.owner, live, spared, not.applied) {
	case verdictDisown:
		return rec, false, d.disown(ctx, entry, live)
	case verdictWait:
		rec.deleting, rec.blockers, rec.because = true, live.GetFinalizers(), remaining(live)
		rec.since = live.GetDeletionTimestamp().Time
		rec.look = nextLook(rec.since, graceOf(live), now)
		d.ledger.note(d.holder, id, rec)
		return rec, true, nil
	case verdictDelete:
		log.FromContext(ctx).V(1).Info("deleting", "object", id.String())
		gone, err := d.spoke.retire(ctx, resource, id, live.GetUID(), "")
		return d.dismissed(id, rec, gone, err)
	case verdictForget:
	}
	return rec, false, nil
}

// disown takes our owner reference from an object that stays.
func (d *draining) disown(ctx context.Context, entry workv1.AppliedManifestResourceMeta,
	live *unstructured.Unstructured,
) error {
	others := slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == d.owner
	})
	_, err := d.spoke.setOwners(ctx, entryResource(entry), entryIdentity(entry), live, others)
	if err != nil && (!apierrors.IsNotFound(err) || kindGone(err)) {
		return fmt.Errorf("taking the owner reference from %s: %w", entryIdentity(entry), err)
	}
	return nil
}

// dismissed notes the answer to a delete request.
func (d *draining) dismissed(id identity, rec record, answer departure, err error) (record, bool, error) {
	switch {
	case kindGone(err):
		return rec, true, err
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return rec, false, nil
	case err != nil:
		d.counts.deletion(deletionFailed)
		return rec, true, fmt.Errorf("deleting %s: %w", id, err)
	case answer.gone:
		d.counts.deletion(deletionGone)
		// The watch will say so, too, which is then no news.
		d.ledger.note(d.holder, id, record{base: rec.base, checked: d.now})
		return rec, false, nil
	}
	d.counts.deletion(deletionHeld)
	rec.deleting, rec.wish, rec.because = true, wish{}, ""
	rec.since, rec.blockers = d.now, answer.finalizers
	if !answer.since.IsZero() {
		rec.since = answer.since
	}
	rec.look = nextLook(rec.since, answer.grace, d.now)
	d.ledger.note(d.holder, id, rec)
	return rec, true, nil
}

// remaining is what an object that is going says about what it waits for, beyond its finalizers: a namespace names what
// is left in it.
func remaining(live *unstructured.Unstructured) string {
	if live.GetKind() != "Namespace" || live.GetAPIVersion() != "v1" {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	said := map[string]string{}
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		name, _ := condition["type"].(string)
		message, _ := condition["message"].(string)
		if condition["status"] == string(metav1.ConditionTrue) {
			said[name] = message
		}
	}
	for _, name := range []string{
		"NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure",
		"NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionDiscoveryFailure",
	} {
		if said[name] != "" {
			return said[name]
		}
	}
	return ""
}

// graceOf is how long an object that is going may take by itself, such as the grace period of a Pod.
func graceOf(live metav1.Object) time.Duration {
	if seconds := live.GetDeletionGracePeriodSeconds(); seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 0
}

// nextLook is when an object that has been going since the given instant is looked at again without an event. The
// deletion timestamp of one with a grace is the end of that: it goes no later, and if it goes before, a watch says so.
// The grace bounds the wait where the clock of the API server differs from ours.
func nextLook(since time.Time, grace time.Duration, now time.Time) time.Time {
	pause := min(max(lookGrowth*now.Sub(since), firstLook), lastLook)
	if left := min(since.Sub(now), grace); left > pause {
		pause = min(left, lastLook)
	}
	return now.Add(pause)
}
