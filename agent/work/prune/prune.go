package prune

import (
	"cmp"
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

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// DefaultTimeout is how long an object that does not go blocks the deletion of the ranks after it.
	DefaultTimeout = 5 * time.Minute
	// parallel is how many objects of one work are deleted at the same time.
	parallel = 8
	// conflictRounds is how often an object is read again when another writer was faster.
	conflictRounds = 4
)

// Result is the answer to a deletion, for counting.
type Result string

const (
	// Gone means that nothing is left of the object.
	Gone Result = "gone"
	// Held means that a finalizer or its grace period holds the object.
	Held Result = "held"
	// Failed means that the request failed.
	Failed Result = "failed"
)

// Pruner deletes tracked objects.
type Pruner struct {
	// Client sends the requests.
	Client spoke.Client
	// Store has the states of the objects.
	Store *watch.Store
	// Mapper maps resources whose version is not served any more.
	Mapper meta.RESTMapper
	// Count counts the answers to deletions.
	Count func(Result)
	// Timeout is how long an object that does not go blocks the ranks after its own.
	Timeout time.Duration
}

// Request is whose objects are pruned.
type Request struct {
	// Owner claimed the objects.
	Owner watch.Owner
	// Room is where the answers of the API server are decoded; nil bounds nothing.
	Room *spoke.Room
	// UID is that of the AppliedManifestWork that owns the objects.
	UID types.UID
	// Now is the instant of the pass.
	Now time.Time
	// Orphaned reports whether an object is orphaned and not deleted.
	Orphaned func(manifest.ID) bool
	// Applied are the UIDs of the objects that manifests mean; other entries of them are dropped.
	Applied map[types.UID]bool
}

// pass is one call of Prune.
type pass struct {
	*Pruner
	Request

	mu sync.Mutex
	// versions looks up, once in a pass, the version that replaces one that is not served any more.
	versions map[schema.GroupVersionResource]func() (string, error)
}

// Prune deletes the objects of the entries, as far as they belong to the AppliedManifestWork, and returns what is not
// gone yet. The objects of one rank are deleted at once. Before roles and bindings it stops where custom resources went
// that are still recorded: the work may have brought the right to read them, and without it they are never found gone
// again.
func (p *Pruner) Prune(ctx context.Context, r Request, entries []workv1.AppliedManifestResourceMeta) Remaining {
	var left Remaining
	one := &pass{Pruner: p, Request: r, versions: map[schema.GroupVersionResource]func() (string, error){}}
	queue, unrecorded := deletionOrder(entries), false
	for len(queue) > 0 {
		if until := left.blocksUntil(p.Timeout); r.Now.Before(until) {
			left.Next = queue
			left.Wake = reconcile.Earliest(left.Wake, until)
			break
		}
		if unrecorded && isPermission(queue[0]) {
			left.Next, left.Unrecorded = queue, true
			left.Wake = reconcile.Earliest(left.Wake, r.Now.Add(firstCheck)) // The record comes with an event, before that.
			break
		}
		end, blocked := rankEnd(queue), len(left.Blocked)
		one.pruneRank(ctx, queue[:end], &left)
		if manifest.IsOther(queue[0].Group, queue[0].Resource) {
			unrecorded = len(left.Blocked)-blocked < end
		}
		queue = queue[end:]
	}
	for i := range left.Blocked {
		left.Pending = append(left.Pending, left.Blocked[i].Entry)
		if due := left.Blocked[i].Since.Add(overdueAfter); r.Now.Before(due) {
			left.Wake = reconcile.Earliest(left.Wake, due)
		}
	}
	left.Pending = append(left.Pending, left.Next...)
	slices.SortFunc(left.Pending, inventory.CompareEntries)
	return left
}

// pruneRank prunes the objects of one rank, several at a time, and adds those that are not gone to left.
func (p *pass) pruneRank(ctx context.Context, rank []workv1.AppliedManifestResourceMeta, left *Remaining) {
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for _, entry := range rank {
		group.Go(func() error {
			id := manifest.IDOf(entry)
			before, _ := p.Store.Look(p.Owner, id)
			var deletion *watch.Deletion
			var err error
			bytes, full := p.Room.Do(ctx, 0, before.Bytes, func(ctx context.Context) {
				if defect := reconcile.Contain(ctx, id.String(), func() { deletion, err = p.prune(ctx, entry) }); defect != nil {
					err = defect
				}
			})
			err = cmp.Or(err, full)
			if err != nil {
				deletion = p.failed(id, before, err)
			}
			if deletion == nil {
				return nil
			}
			p.Store.Measure(p.Owner, id, bytes) // so that it is asked for once the next time
			mu.Lock()
			defer mu.Unlock()
			left.Err = errors.Join(left.Err, err)
			left.Wake = reconcile.Earliest(left.Wake, deletion.Next)
			left.Blocked = append(left.Blocked, Blocked{
				Entry: entry, Since: deletion.Since, Finalizers: deletion.Finalizers, Cause: deletion.Cause,
			})
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(left.Blocked, func(a, b Blocked) int { return inventory.CompareEntries(a.Entry, b.Entry) })
}

// failed records that an object could not be deleted, and since when; state is that before the pass.
func (p *pass) failed(id manifest.ID, state watch.State, err error) *watch.Deletion {
	deletion := watch.Deletion{}
	if state.Deletion != nil {
		deletion = *state.Deletion
	}
	if deletion.Cause == "" || deletion.Since.IsZero() {
		deletion.Since = p.Now
	}
	deletion.Cause = "cannot be deleted: " + ErrorText(err)
	return p.record(id, state, deletion)
}

// prune deletes one object. It returns its deletion as long as it is not gone; nil means that its entry may be dropped.
// Where the version of the entry is not served any more, it uses one that is.
func (p *pass) prune(ctx context.Context, entry workv1.AppliedManifestResourceMeta) (*watch.Deletion, error) {
	if !manifest.HasAddress(manifest.IDOf(entry)) {
		return nil, nil // It never existed; earlier versions recorded such names before they tried.
	}
	deletion, err := p.pruneAs(ctx, entry)
	if !reconcile.KindGone(err) {
		return deletion, err
	}
	version, err := p.servedVersion(ctx, manifest.ResourceOf(entry))
	if err != nil || version == "" {
		return nil, err
	}
	entry.Version = version
	return p.pruneAs(ctx, entry)
}

// pruneAs is prune in the version of the entry, with as few requests as the state of the object allows.
func (p *pass) pruneAs(ctx context.Context, entry workv1.AppliedManifestResourceMeta) (*watch.Deletion, error) {
	id := manifest.IDOf(entry)
	state, drift := p.Store.Look(p.Owner, id)
	known := state.Deletion
	requested := known != nil && known.Requested
	switch {
	case drift == watch.Deleted || p.Applied[types.UID(entry.UID)]:
		return nil, nil // nil is an answer here
	case requested && drift == watch.Unchanged && p.Now.Before(known.Next):
		return known, nil
	case drift == watch.Unchanged && !requested && state.Object.Sole && state.Object.Exists && !p.Orphaned(id) &&
		!p.Applied[state.Object.UID] && (entry.UID == "" || entry.UID == string(state.Object.UID)):
		answer, err := p.Client.At(manifest.ResourceOf(entry), id).Delete(ctx, state.Object.UID, state.Object.Version)
		if !apierrors.IsConflict(err) {
			return p.answered(id, state, answer, err)
		}
	}
	for round := 1; ; round++ {
		deletion, err := p.pruneLive(ctx, entry, state)
		if round == conflictRounds || !apierrors.IsConflict(err) {
			return deletion, err
		}
	}
}

// pruneLive reads an object and does what follows. It deletes the object only as it was read: another work may take it
// over at any time. That a user wrote the object since is a conflict.
func (p *pass) pruneLive(ctx context.Context, entry workv1.AppliedManifestResourceMeta, state watch.State,
) (*watch.Deletion, error) {
	id, known := manifest.IDOf(entry), state.Deletion
	object := p.Client.At(manifest.ResourceOf(entry), id)
	live, err := object.Get(ctx)
	if err != nil || live == nil {
		return nil, err
	}
	state = watch.State{Observed: state.Observed, Requested: p.Now, Object: watch.ObjectOf(live), Bytes: state.Bytes}
	if known != nil {
		state.Deletion = &watch.Deletion{Since: known.Since, Cause: known.Cause}
	}
	switch p.decide(entry, live) {
	case verbOrphan:
		return nil, p.orphan(ctx, entry, live)
	case verbWait:
		since := goingSince(known, live, p.Now)
		return p.record(id, state, watch.Deletion{
			Requested: true, Since: since, Finalizers: live.GetFinalizers(), Cause: namespaceCause(live),
			Next: nextCheck(since, p.Now),
		}), nil
	case verbDelete:
		log.FromContext(ctx).V(1).Info("deleting", "object", id.String())
		answer, err := object.Delete(ctx, live.GetUID(), live.GetResourceVersion())
		return p.answered(id, state, answer, err)
	case verbDrop:
	}
	return nil, nil // nil is an answer here
}

// orphan removes our owner reference from an object that stays.
func (p *pass) orphan(ctx context.Context, entry workv1.AppliedManifestResourceMeta, live *unstructured.Unstructured,
) error {
	others := slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == p.UID
	})
	id := manifest.IDOf(entry)
	_, err := p.Client.At(manifest.ResourceOf(entry), id).SetOwners(ctx, live, others)
	if err != nil && !reconcile.ObjectGone(err) {
		return fmt.Errorf("taking the owner reference from %s: %w", id, err)
	}
	return nil
}

// answered records the answer to a deletion.
func (p *pass) answered(id manifest.ID, state watch.State, answer spoke.Deletion, err error,
) (*watch.Deletion, error) {
	switch {
	case reconcile.KindGone(err):
		return nil, err
	case apierrors.IsNotFound(err):
		return nil, nil // nil is an answer here
	case spoke.IsLarger(err):
		return nil, err // it is asked again
	case err != nil:
		p.Count(Failed)
		return nil, fmt.Errorf("deleting %s: %w", id, err)
	case answer.Gone:
		p.Count(Gone)
		// The event of the deletion changes nothing after that.
		p.Store.Record(p.Owner, id, watch.State{Observed: state.Observed, Requested: p.Now})
		return nil, nil // nil is an answer here
	}
	p.Count(Held)
	since := p.Now.Add(answer.Grace)
	state.Applied = watch.Applied{}
	return p.record(id, state, watch.Deletion{
		Requested: true, Since: since, Finalizers: answer.Finalizers, Next: nextCheck(since, p.Now),
	}), nil
}

// record stores the deletion of an object that is not gone.
func (p *pass) record(id manifest.ID, state watch.State, deletion watch.Deletion) *watch.Deletion {
	state.Deletion = &deletion
	p.Store.Record(p.Owner, id, state)
	return &deletion
}
