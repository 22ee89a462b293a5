package work

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/apply/merge"
)

// update keeps the object as the manifest says (strategy Update).
func (a *applier) update(ctx context.Context, t *task, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	merge.SetSpecHash(desired)
	for round := 1; ; round++ {
		live, made, err := a.find(ctx, t, desired)
		if err != nil || made {
			return live, err
		}
		next, difference, mergeErr := merge.Into(live, desired, t.owner, t.owned)
		switch {
		case merge.NeedsRecreation(mergeErr):
			return a.recreate(ctx, t, live, desired)
		case mergeErr != nil:
			return live, fmt.Errorf("merging %s: %w", t.id(), mergeErr)
		case difference == merge.Equal, difference == merge.Extra && t.settled(live):
			return live, nil
		}
		if err := t.allowRepair(); err != nil {
			return live, err
		}
		written, err := a.replace(ctx, t, next)
		switch {
		case err == nil:
			if written.GetResourceVersion() != live.GetResourceVersion() {
				t.tell(ctx, "updated")
			}
			return written, nil
		case apierrors.IsConflict(err) && round < conflictRounds:
			t.expected, t.heard = true, newsChanged
		case apierrors.IsInvalid(err):
			return a.afterRefusal(ctx, t, live, desired, err)
		default:
			return live, fmt.Errorf("updating %s: %w", t.id(), err)
		}
	}
}

// settled reports whether what the live object says beyond the manifest is known to be the work of the API server: it
// said the same right after the last write, or this manifest is known to be applied, after a restart by the status, and
// nobody else set any content since.
func (t *task) settled(live *unstructured.Unstructured) bool {
	known := t.prior.wish == t.wish && t.prior.failure == nil && t.prior.content != (digest{})
	if known && t.prior.content == digestOf(content.Of(live)) {
		return true
	}
	return (t.current || known) && !content.Foreign(live)
}

// afterRefusal deals with an update that the API server finds invalid. What can be made anew is. When
// only fields that the manifest does not mention stand in the way, such as the selector of a Job or the volume of a
// claim, the manifest is in force already and no more than the metadata is written.
func (a *applier) afterRefusal(ctx context.Context, t *task, live, desired *unstructured.Unstructured, refusal error,
) (*unstructured.Unstructured, error) {
	if merge.Recreatable(t.gvk.GroupKind()) && merge.Immutable(refusal) {
		return a.recreate(ctx, t, live, desired)
	}
	refusal = fmt.Errorf("updating %s: %w", t.id(), refusal)
	if !content.Contains(content.Of(live), content.Of(desired)) {
		return live, refusal
	}
	next := live.DeepCopy()
	next.SetManagedFields(nil)
	if !merge.Metadata(next, desired, t.owner, t.owned) {
		return live, nil
	}
	written, err := a.replace(ctx, t, next)
	if err != nil {
		return live, fmt.Errorf("updating the metadata of %s: %w", t.id(), err)
	}
	return written, nil
}

// recreate deletes an object that cannot be changed in place and makes it anew. It is deleted only when the API server
// accepts what is to take its place, and when the executor of the work, if it has one, may delete it.
func (a *applier) recreate(ctx context.Context, t *task, live, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if t.offline {
		return live, fmt.Errorf("%s cannot be changed in place; it is made anew when the hub is back", t.id())
	}
	if err := t.allowRepair(); err != nil {
		return live, err
	}
	next := merge.ForRecreate(live, desired, t.owner, t.owned)
	if err := a.spoke.tryCreate(ctx, t.resource, t.id(), next); err != nil {
		return live, fmt.Errorf("making %s anew, for it cannot be changed in place; it stays as it is: %w", t.id(), err)
	}
	if t.mayDelete != nil {
		if err := t.mayDelete(ctx); err != nil {
			return live, err
		}
	}
	if err := a.remove(ctx, t, live.GetUID()); err != nil && !apierrors.IsNotFound(err) {
		return live, fmt.Errorf("deleting %s to make it anew: %w", t.id(), err)
	}
	log.FromContext(ctx).Info("made anew, for it cannot be changed in place", "object", t.id().String())
	made, err := a.create(ctx, t, next)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("making %s anew: waiting for the original object to be deleted", t.id())
	case err != nil:
		return nil, fmt.Errorf("making %s anew: %w", t.id(), err)
	}
	return made, nil
}
