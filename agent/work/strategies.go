package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/ignore"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// createOnly makes the object when it does not exist, and otherwise only sees to its owner (strategy CreateOnly).
func (a *applier) createOnly(ctx context.Context, t *task, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	live, made, err := a.find(ctx, t, desired)
	if err != nil || made {
		return live, err
	}
	return a.own(ctx, t, live)
}

// serverSideApply sends the manifest as an applied configuration (strategy ServerSideApply), unless it is in force
// already. A conflict with another manager is for a person to solve and is not tried again before something changes.
func (a *applier) serverSideApply(ctx context.Context, t *task, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	c, err := ssa.Configure(ctx, desired, t.option.strategy.ServerSideApply)
	var stopped ignore.StoppedError
	switch {
	case errors.As(err, &stopped):
		return nil, unreadableError{read: err}
	case err != nil:
		return a.read(ctx, t, &failure{reason: workv1.AppliedManifestSSAIgnoreFieldError, message: err.Error()})
	}
	t.configuration = c
	var live *unstructured.Unstructured
	if t.looksFirst() {
		live, err = a.spoke.get(ctx, t.resource, t.id())
		if err != nil {
			return nil, unreadableError{read: err}
		}
		if live != nil && t.inForce(live) {
			return a.own(ctx, t, live)
		}
	}
	if err := t.allowRepair(); err != nil {
		return live, err
	}
	return a.applyConfiguration(ctx, t, live)
}

// looksFirst reports whether an object is read before it is applied: when it may be in force already, and when it
// matters whether it exists or how it is.
func (t *task) looksFirst() bool {
	if t.configuration.Ignores || t.trial != nil {
		return true
	}
	undisturbed := t.granted() && t.heard != newsGone
	restarted := t.prior.wish == (wish{}) && t.expected && t.current
	return undisturbed || restarted
}

// inForce reports whether the configuration of the task is in force in a live object. What this process found so stays
// so until somebody touches what was applied; after a restart the managed fields tell.
func (t *task) inForce(live *unstructured.Unstructured) bool {
	if t.granted() && t.prior.uid == live.GetUID() && t.prior.content != (digest{}) &&
		t.prior.content == digest(t.configuration.Digest(live)) {
		return true
	}
	return t.configuration.InForce(live, t.trusted(live))
}

// trusted reports whether it is known that this very manifest was applied to the live object, whatever its mark says.
func (t *task) trusted(live *unstructured.Unstructured) bool {
	return t.current || (t.granted() && t.prior.uid == live.GetUID())
}

// applyConfiguration applies until it is done or refused; live is the object as it was read, nil when it was not read
// or does not exist.
func (a *applier) applyConfiguration(ctx context.Context, t *task, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	c := t.configuration
	for round := 1; ; round++ {
		next := t.plan(live, live != nil && t.trusted(live))
		if live == nil && t.owned && (t.looksFirst() || t.createFirst() || round > 1) {
			// From its first moment the object has its owner, without whom nothing would delete it if the agent died now.
			next.SetOwnerReferences(withOwner(next.GetOwnerReferences(), t.owner, true))
		}
		written, err := a.applyOrMake(ctx, t, live, next)
		switch {
		case err == nil && live == nil && t.trial != nil:
			// What was made is not applied yet.
			live = written
			continue
		case err == nil:
			return a.applied(ctx, t, live, written)
		}
		refusal := fmt.Errorf("applying %s: %w", t.id(), err)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return a.read(ctx, t, refusal)
		}
		live, err = a.spoke.get(ctx, t.resource, t.id())
		switch {
		case err != nil:
			return nil, unreadableError{because: refusal, read: err}
		case managerConflict(refusal) && live != nil:
		case round >= conflictRounds:
			return live, refusal
		default:
			continue
		}
		entries, moved := ssa.HandOver(live, c.Manager, t.owner.UID, true)
		if !moved {
			return live, &failure{reason: workv1.AppliedManifestFailed, message: refusal.Error()}
		}
		if live, err = a.setManagers(ctx, t, live, entries); err != nil {
			return live, err
		}
	}
}

// applied puts managers and owners of an object right that was just applied; before is how it was.
func (a *applier) applied(ctx context.Context, t *task, before, written *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if before == nil || before.GetResourceVersion() != written.GetResourceVersion() {
		t.tell(ctx, "applied")
	}
	c := t.configuration
	entries, moved := ssa.HandOver(written, c.Manager, t.owner.UID, true)
	if !moved {
		return a.own(ctx, t, written)
	}
	handed, err := a.setManagers(ctx, t, written, entries)
	if err != nil {
		return written, err
	}
	if !c.InForce(handed, true) {
		// What the agent wrote under another strategy and the manifest does not say any more goes now.
		last, err := a.applyOrMake(ctx, t, handed, t.plan(handed, true))
		if err != nil {
			return handed, fmt.Errorf("applying %s: %w", t.id(), err)
		}
		handed = last
	}
	return a.own(ctx, t, handed)
}

// retryAt is when a manifest that failed for good is tried again although nothing was heard; zero when it did not fail.
// What the API server refuses for other reasons than the object, such as a right, a quota or a webhook, changes without
// a word: so it is tried again as long after the last attempt as it has been refused by then, and in the end as rarely
// as all others.
func (t *task) retryAt() time.Time {
	if t.prior.failure == nil {
		return time.Time{}
	}
	at := t.prior.checked.Add(reconcile.Spread(recheckPause, recheckSpread, t.id().String()))
	if refused := t.prior.refused; !refused.IsZero() {
		sooner := t.prior.checked.Add(max(t.prior.checked.Sub(refused), firstRetry))
		if sooner.Before(at) {
			return sooner
		}
	}
	return at
}

// managerConflict reports whether a conflict is one with another manager, and not only with a newer version.
func managerConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// readOnly only looks at the object (strategy ReadOnly), except that an object which the work once owned does not
// belong to it any more and must not go with it.
func (a *applier) readOnly(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	live, err := a.read(ctx, t, nil)
	if err != nil || live == nil {
		return live, err
	}
	return a.disown(ctx, t, live)
}

// disown takes the work out of the owners of a live object.
func (a *applier) disown(ctx context.Context, t *task, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	refs := withOwner(live.GetOwnerReferences(), t.owner, false)
	if len(refs) == len(live.GetOwnerReferences()) {
		return live, nil
	}
	freed, err := a.spoke.setOwners(ctx, t.resource, t.id(), live, refs)
	if err != nil {
		return live, fmt.Errorf("giving up %s: %w", t.id(), err)
	}
	return freed, nil
}

// own makes the owner references of a live object those that the work wants.
func (a *applier) own(ctx context.Context, t *task, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	refs := withOwner(live.GetOwnerReferences(), t.owner, t.owned)
	if equality.Semantic.DeepEqual(refs, live.GetOwnerReferences()) {
		return live, nil
	}
	owned, err := a.spoke.setOwners(ctx, t.resource, t.id(), live, refs)
	if err != nil {
		return live, fmt.Errorf("setting the owners of %s: %w", t.id(), err)
	}
	return owned, nil
}

// setManagers writes the managed fields of a live object, guarded by its UID and resourceVersion.
func (a *applier) setManagers(ctx context.Context, t *task, live *unstructured.Unstructured,
	entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": entries,
	}})
	if err != nil {
		return live, fmt.Errorf("encoding the managers of %s: %w", t.id(), err)
	}
	handed, err := a.spoke.at(t.resource, t.id()).Patch(ctx, t.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManagerWork})
	if err != nil {
		return live, fmt.Errorf("setting the managers of %s: %w", t.id(), err)
	}
	return handed, nil
}
