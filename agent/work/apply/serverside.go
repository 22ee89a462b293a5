package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/ignore"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// serverSideApply applies the manifest as a configuration (strategy ServerSideApply), unless it is in force already. A
// conflict with another manager needs a person and is not retried before something changes.
func (r *run) serverSideApply(ctx context.Context, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	c, err := ssa.Configure(ctx, desired, r.step.Manifest.Options.Strategy.ServerSideApply)
	var stopped ignore.StoppedError
	switch {
	case errors.As(err, &stopped):
		return nil, unreadableError{read: err}
	case err != nil:
		return r.read(ctx, &manifest.PermanentError{
			Reason: workv1.AppliedManifestSSAIgnoreFieldError, Message: err.Error(),
		})
	}
	r.config = c
	var live *unstructured.Unstructured
	if r.readsFirst() {
		if live, err = r.read(ctx, nil); err != nil {
			return nil, err
		}
		if live != nil && r.inForce(live) {
			return r.setOwner(ctx, live)
		}
	}
	if err := r.allowRepair(); err != nil {
		return live, err
	}
	return r.applyConfiguration(ctx, live)
}

// readsFirst reports whether an object is read before it is applied: when the configuration may be in force already,
// and when it matters whether the object exists or how it is.
func (r *run) readsFirst() bool {
	if r.config.Ignores || r.trial != nil {
		return true
	}
	known := &r.step.Known
	undisturbed := r.inSync() && known.Drift != watch.Deleted
	restarted := known.State.Applied.Desired == (manifest.Digest{}) && known.Listed && known.Current
	return undisturbed || restarted
}

// inForce reports whether the configuration is in force in a live object. Once it was found so, it stays so until
// a user changes what was applied; after a restart the managed fields decide.
func (r *run) inForce(live *unstructured.Unstructured) bool {
	was := &r.step.Known.State.Object
	if r.inSync() && was.UID == live.GetUID() && was.Content != (manifest.Digest{}) &&
		was.Content == r.config.Digest(live) {
		return true
	}
	return r.config.InForce(live, r.trusted(live))
}

// trusted reports whether this very manifest is known to be applied to the live object, whatever its annotation says.
func (r *run) trusted(live *unstructured.Unstructured) bool {
	return r.step.Known.Current || (r.inSync() && r.step.Known.State.Object.UID == live.GetUID())
}

// applyConfiguration applies until it succeeds or is refused; live is the object as it was read, nil when it was not
// read or does not exist.
func (r *run) applyConfiguration(ctx context.Context, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	for round := 1; ; round++ {
		next := r.next(live, live != nil && r.trusted(live))
		if live == nil && r.step.Manifest.Options.Owned && (r.readsFirst() || r.createFirst() || round > 1) {
			// The object has its owner from the beginning: without one, nothing would delete it if the agent died now.
			next.SetOwnerReferences(inventory.WithOwner(next.GetOwnerReferences(), r.Owner, true))
		}
		written, err := r.applyOrCreate(ctx, live, next)
		switch {
		case err == nil && live == nil && r.trial != nil:
			live = written // it is created, and applied next
			continue
		case err == nil:
			return r.applied(ctx, live, written)
		}
		refusal := fmt.Errorf("applying %s: %w", r.id(), err)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return r.read(ctx, refusal)
		}
		live, err = r.object().Get(ctx)
		switch {
		case err != nil:
			return nil, unreadableError{because: refusal, read: err}
		case managerConflict(refusal) && live != nil:
		case round >= conflictRounds:
			return live, refusal
		default:
			continue
		}
		entries, moved := ssa.HandOver(live, r.config.Manager, r.Owner.UID, true)
		if !moved {
			return live, manifest.Failed(refusal.Error())
		}
		if live, err = r.setManagers(ctx, live, entries); err != nil {
			return live, err
		}
	}
}

// applied corrects managers and owners of an object that was just applied; before is how it was.
func (r *run) applied(ctx context.Context, before, written *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if before == nil || before.GetResourceVersion() != written.GetResourceVersion() {
		r.report(ctx, doneApplied)
	}
	entries, moved := ssa.HandOver(written, r.config.Manager, r.Owner.UID, true)
	if !moved {
		return r.setOwner(ctx, written)
	}
	handed, err := r.setManagers(ctx, written, entries)
	if err != nil {
		return written, err
	}
	if !r.config.InForce(handed, true) {
		// Fields that the agent wrote under another strategy and that left the manifest go now.
		last, err := r.applyOrCreate(ctx, handed, r.next(handed, true))
		if err != nil {
			return handed, fmt.Errorf("applying %s: %w", r.id(), err)
		}
		handed = last
	}
	return r.setOwner(ctx, handed)
}

// setManagers writes the managed fields of a live object.
func (r *run) setManagers(ctx context.Context, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	handed, err := r.object().SetManagers(ctx, live, entries)
	if err != nil {
		return live, fmt.Errorf("setting the managers of %s: %w", r.id(), err)
	}
	return handed, nil
}

// managerConflict reports whether a conflict is one with another manager, and not only with a newer version.
func managerConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
