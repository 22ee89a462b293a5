package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/apply/merge"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/apierror"
)

// forCreate readies the desired object for its creation.
func (r *run) forCreate(desired *unstructured.Unstructured) *unstructured.Unstructured {
	return merge.ForCreate(desired, r.Owner, r.step.Manifest.Options.Owned)
}

// isAlreadyExists reports whether an object could not be created because it exists.
func isAlreadyExists(err error) bool { return apierrors.IsAlreadyExists(err) }

// update merges the manifest into the object (strategy Update).
func (r *run) update(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	merge.SetSpecHash(desired)
	for round := 1; ; round++ {
		live, created, err := r.find(ctx, desired)
		if err != nil || created {
			return live, err
		}
		next, delta, mergeErr := merge.Into(live, desired, r.Owner, r.step.Manifest.Options.Owned)
		switch {
		case merge.NeedsRecreation(mergeErr):
			return r.recreate(ctx, live, desired)
		case mergeErr != nil:
			return live, fmt.Errorf("merging %s: %w", r.id(), mergeErr)
		case delta == merge.Equal, delta == merge.Extra && r.completed(live):
			return live, nil
		}
		if err := r.allowRepair(); err != nil {
			return live, err
		}
		written, err := r.replace(ctx, next)
		switch {
		case err == nil:
			if written.GetResourceVersion() != live.GetResourceVersion() {
				r.report(ctx, doneUpdated)
			}
			return written, nil
		case apierrors.IsConflict(err) && round < conflictRounds:
			r.readFirst = true
		case apierrors.IsInvalid(err):
			return r.afterRefusal(ctx, live, desired, err)
		default:
			return live, fmt.Errorf("updating %s: %w", r.id(), err)
		}
	}
}

// completed reports whether the content of a live object beyond the manifest comes from the API server: it was the same
// right after the last write, or this manifest is known to be applied, after a restart by the status, and nobody else
// set any content since.
func (r *run) completed(live *unstructured.Unstructured) bool {
	state := &r.step.Known.State
	known := state.Applied.Desired == r.step.Manifest.Desired && state.Applied.Mode == r.mode &&
		state.Failed == nil && state.Object.Content != (manifest.Digest{})
	if known && state.Object.Content == manifest.DigestOf(content.Of(live)) {
		return true
	}
	return (r.step.Known.Current || known) && !content.Foreign(live)
}

// afterRefusal deals with an update that the API server finds invalid. An object of a kind that may be recreated is.
// When only fields stand in the way that the manifest does not mention, such as the selector of a Job or the volume of
// a claim, the manifest is in force already and only the metadata is written.
func (r *run) afterRefusal(ctx context.Context, live, desired *unstructured.Unstructured, refusal error,
) (*unstructured.Unstructured, error) {
	if merge.Recreatable(r.step.Manifest.GVK.GroupKind()) && apierror.ImmutableField(refusal) {
		return r.recreate(ctx, live, desired)
	}
	refusal = fmt.Errorf("updating %s: %w", r.id(), refusal)
	if !content.Contains(content.Of(live), content.Of(desired)) {
		return live, refusal
	}
	next := live.DeepCopy()
	next.SetManagedFields(nil)
	if !merge.Metadata(next, desired, r.Owner, r.step.Manifest.Options.Owned) {
		return live, nil
	}
	written, err := r.replace(ctx, next)
	if err != nil {
		return live, fmt.Errorf("updating the metadata of %s: %w", r.id(), err)
	}
	return written, nil
}

// recreate deletes an object that cannot be changed in place and creates it again. It is deleted only when the API
// server accepts its replacement, and when the executor of the work, if there is one, may delete it.
func (r *run) recreate(ctx context.Context, live, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if r.step.Known.Offline {
		return live, fmt.Errorf("%s cannot be changed in place; it is made again when the hub is back", r.id())
	}
	if err := r.allowRepair(); err != nil {
		return live, err
	}
	next := merge.ForRecreate(live, desired, r.Owner, r.step.Manifest.Options.Owned)
	if err := r.object().TryCreate(ctx, next); err != nil {
		return live, fmt.Errorf("making %s again, for it cannot be changed in place; it stays as it is: %w", r.id(), err)
	}
	if err := r.mayDelete(ctx); err != nil {
		return live, err
	}
	if err := r.remove(ctx, live.GetUID()); err != nil && !apierrors.IsNotFound(err) {
		return live, fmt.Errorf("deleting %s to make it again: %w", r.id(), err)
	}
	log.FromContext(ctx).Info("made again, for it cannot be changed in place", "object", r.id().String())
	created, err := r.create(ctx, next)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("making %s again: waiting for the original object to be deleted", r.id())
	case err != nil:
		return nil, fmt.Errorf("making %s again: %w", r.id(), err)
	}
	return created, nil
}

// createOnly creates the object when it does not exist, and otherwise sets the owner reference only.
func (r *run) createOnly(ctx context.Context, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	live, created, err := r.find(ctx, desired)
	if err != nil || created {
		return live, err
	}
	return r.setOwner(ctx, live)
}

// readOnly reads the object only, except that an object which the work once owned must not be deleted with it.
func (r *run) readOnly(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := r.read(ctx, nil)
	if err != nil || live == nil {
		return live, err
	}
	refs := inventory.WithOwner(live.GetOwnerReferences(), r.Owner, false)
	if len(refs) == len(live.GetOwnerReferences()) {
		return live, nil
	}
	freed, err := r.object().SetOwners(ctx, live, refs)
	if err != nil {
		return live, fmt.Errorf("giving up %s: %w", r.id(), err)
	}
	return freed, nil
}

// setOwner makes the owner references of a live object those that the work wants.
func (r *run) setOwner(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	refs := inventory.WithOwner(live.GetOwnerReferences(), r.Owner, r.step.Manifest.Options.Owned)
	if equality.Semantic.DeepEqual(refs, live.GetOwnerReferences()) {
		return live, nil
	}
	owned, err := r.object().SetOwners(ctx, live, refs)
	if err != nil {
		return live, fmt.Errorf("setting the owners of %s: %w", r.id(), err)
	}
	return owned, nil
}
