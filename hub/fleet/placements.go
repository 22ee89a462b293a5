package fleet

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// maxKnown is how many Placements are known at most before those that do not exist are forgotten again.
const maxKnown = 10_000

// Placements knows what Placements have decided, and since when.
type Placements struct {
	// Client reads from the cache of the manager.
	Client client.Reader
	// Own reports whether this hub manager schedules Placements.
	Own bool
	// Passes knows what our own placement has decided; nil where that is in another process, or not known.
	Passes *Passes
	// Final reports that nothing will be decided later, as where the objects are those of files.
	Final bool
	// Clock is the clock of those who ask.
	Clock clock.PassiveClock

	gate  reconcile.Gate
	known map[types.NamespacedName]known
	seed  maphash.Seed
}

// known holds what is known about the decisions of a Placement, and of which versions of its objects.
type known struct {
	decisions *Decisions
	versions  uint64
}

// Decisions returns what is known about the decisions of a Placement.
func (p *Placements) Decisions(ctx context.Context, key types.NamespacedName) (*Decisions, error) {
	// A caller that asks later must not know less, so nobody reads in between.
	leave, err := p.gate.Enter(ctx, "read what Placements have decided")
	if err != nil {
		return nil, err
	}
	defer leave()
	placement, err := reconcile.Peek(ctx, p.Client, key, &clusterv1beta1.Placement{})
	if err != nil {
		return nil, err
	}
	pages, err := p.pages(ctx, key)
	if err != nil {
		return nil, err
	}
	if p.known == nil {
		p.known, p.seed = map[types.NamespacedName]known{}, maphash.MakeSeed()
	}
	before, versions := p.known[key], p.versionsOf(orNone(placement), each(pages))
	if before.decisions != nil && before.versions == versions {
		return before.decisions, nil
	}
	d := NewDecisions(Seen{
		Key: key, Placement: placement, Pages: reconcile.Pointers(pages), Own: p.Own, Before: before.decisions,
	}, p.Clock.Now())
	p.known[key] = known{d, versions}
	p.bound()
	return d, nil
}

// pages reads the PlacementDecisions of a Placement, which must not be changed.
func (p *Placements) pages(ctx context.Context, key types.NamespacedName) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := p.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{names.LabelPlacement: key.Name}); err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	return list.Items, nil
}

// Undecoded returns what the PlacementDecisions of a Placement say that cannot be decoded, and why nothing else is
// certain. Nobody confirms that.
func (p *Placements) Undecoded(ctx context.Context, key types.NamespacedName, why error) (*Decisions, error) {
	pages, err := p.pages(ctx, key)
	if err != nil {
		return nil, err
	}
	d := NewDecisions(Seen{Key: key, Pages: reconcile.Pointers(pages), Own: p.Own}, p.Clock.Now())
	d.Incomplete, d.Unfit = why, why
	return d, nil
}

// Confirm returns an error, which is a lost race, if the decisions that were returned last are not those that live,
// usually the API server, has now. Who deletes something because of decisions asks that before: a cache may be behind
// by any time. Only metadata are read.
func (p *Placements) Confirm(ctx context.Context, live client.Reader, d *Decisions) error {
	leave, err := p.gate.Enter(ctx, "confirm what Placements have decided")
	if err != nil {
		return err
	}
	known := p.known[d.Key]
	leave()
	behind := reconcile.Behind(version().Group, "placements", d.Key.String())
	if known.decisions != d {
		return behind
	}
	placement := &metav1.PartialObjectMetadata{}
	placement.SetGroupVersionKind(version().WithKind("Placement"))
	if placement, err = reconcile.Get(ctx, live, d.Key, placement); err != nil {
		return err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(version().WithKind("PlacementDecisionList"))
	if err := live.List(ctx, &list, client.InNamespace(d.Key.Namespace),
		client.MatchingLabels{names.LabelPlacement: d.Key.Name}); err != nil {
		return fmt.Errorf("listing the decisions of Placement %s: %w", d.Key, err)
	}
	if p.versionsOf(orNone(placement), each(list.Items)) != known.versions {
		return behind
	}
	return nil
}

// Forget forgets a Placement, of which nobody will ask what it has decided, if it does not exist.
func (p *Placements) Forget(ctx context.Context, key types.NamespacedName) error {
	leave, err := p.gate.Enter(ctx, "forget what a Placement has decided")
	if err != nil {
		return err
	}
	defer leave()
	placement, err := reconcile.Peek(ctx, p.Client, key, &clusterv1beta1.Placement{})
	if err == nil && placement == nil {
		delete(p.known, key)
	}
	return err
}

func version() schema.GroupVersion { return schema.GroupVersion(clusterv1beta1.GroupVersion) }

// bound forgets the Placement that was found missing last, when there are too many: since when one is missing counts,
// but not without a bound, and a user who names thousands makes others no newer.
func (p *Placements) bound() {
	if len(p.known) <= maxKnown {
		return
	}
	var last types.NamespacedName
	var since time.Time
	for key, of := range p.known {
		if at := of.decisions.DoubtedSince; of.decisions.Placement == nil && !at.Before(since) {
			last, since = key, at
		}
	}
	if !since.IsZero() {
		delete(p.known, last)
	}
}

// versionsOf identifies the versions of a Placement and its PlacementDecisions, in whatever order: each add-on asks for
// them in each pass, and reading thousands of names is only worth it after a change.
func (p *Placements) versionsOf(placement metav1.Object, pages iter.Seq[metav1.Object]) uint64 {
	type version struct {
		kind, name, version string
		uid                 types.UID
	}
	var sum uint64
	if placement != nil {
		sum = maphash.Comparable(p.seed, version{"Placement", "", placement.GetResourceVersion(), placement.GetUID()})
	}
	for page := range pages {
		sum += maphash.Comparable(p.seed,
			version{"PlacementDecision", page.GetName(), page.GetResourceVersion(), page.GetUID()})
	}
	return sum
}

// each yields pointers to the objects of a list.
func each[T any, P interface {
	*T
	metav1.Object
}](items []T) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for i := range items {
			if !yield(P(&items[i])) {
				return
			}
		}
	}
}

// orNone returns an object, or nothing for a nil pointer.
func orNone[T any, P interface {
	*T
	metav1.Object
}](object P) metav1.Object {
	if object == nil {
		return nil
	}
	return object
}

// LastWritten returns when an object was last written, as far as the cache knows. The API server notes no time of a
// write that only takes fields away.
func LastWritten(o metav1.Object) time.Time {
	last := lastOf(o, func(metav1.ManagedFieldsEntry) bool { return true })
	if at := o.GetDeletionTimestamp(); at != nil && at.After(last) {
		last = at.Time // what marks an object as being deleted is a write, too, which managedFields do not show
	}
	return last
}

// LastEdited is LastWritten without writes of the status.
func LastEdited(o metav1.Object) time.Time {
	return lastOf(o, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "" })
}

// lastOf returns the last time of some writes of an object, its creation among them.
func lastOf(o metav1.Object, counts func(metav1.ManagedFieldsEntry) bool) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil && counts(entry) && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// TrimDecision is the cache transformation of PlacementDecisions. Of managedFields it keeps only the time of the last
// write, which shows whether decisions are being rewritten.
func TrimDecision(in any) (any, error) {
	return KeepWritten(func(in any) (any, error) { return in, nil })(in)
}

// KeepWritten is another cache transformation that keeps of managedFields the time of the last write. What the API
// server wrote when is compared by its own clock, not by that of who watches or reports.
func KeepWritten(trim func(any) (any, error)) func(any) (any, error) { return keep(LastWritten, trim) }

// KeepEdited is another cache transformation that keeps of managedFields the time of LastEdited.
func KeepEdited(trim func(any) (any, error)) func(any) (any, error) { return keep(LastEdited, trim) }

func keep(last func(metav1.Object) time.Time, trim func(any) (any, error)) func(any) (any, error) {
	return func(in any) (any, error) {
		o, err := meta.Accessor(in)
		if err != nil || len(o.GetManagedFields()) == 0 {
			return trim(in) // A transformation must pass on what it does not know.
		}
		at := metav1.NewTime(last(o))
		out, err := trim(in)
		if o, is := out.(metav1.Object); is {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &at}})
		}
		return out, err
	}
}
