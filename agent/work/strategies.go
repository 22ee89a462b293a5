package work

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
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

// serverSideApply sends the manifest as an applied configuration (strategy ServerSideApply). A conflict with another
// manager is for a person to solve and is not tried again before something changes.
func (a *applier) serverSideApply(ctx context.Context, t *task, desired *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	config := t.option.strategy.ServerSideApply
	if config == nil {
		config = &workv1.ServerSideApplyConfig{}
	}
	if len(config.IgnoreFields) > 0 {
		return a.read(ctx, t, &failure{
			reason: workv1.AppliedManifestSSAIgnoreFieldError,
			message: "this agent does not support ignoreFields yet; remove them from the strategy of " +
				t.id().String(),
		})
	}
	manager := config.FieldManager
	if manager == "" {
		manager = workv1.DefaultFieldManager
	}
	dropNullTimestamps(desired.Object)
	if err := t.allowRepair(); err != nil {
		return nil, err
	}
	live, err := a.spoke.serverSideApply(ctx, t.resource, t.id(), desired, manager, config.Force)
	switch {
	case err == nil:
		return a.own(ctx, t, live)
	case apierrors.IsConflict(err):
		return a.read(ctx, t, &failure{reason: workv1.AppliedManifestFailed, message: err.Error()})
	}
	return a.read(ctx, t, fmt.Errorf("applying %s: %w", t.id(), err))
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

// dropNullTimestamps removes creationTimestamp: null from every metadata in the value, at any depth: as an applied
// field it would change the object each time.
func dropNullTimestamps(value any) {
	switch value := value.(type) {
	case map[string]any:
		if meta, ok := value["metadata"].(map[string]any); ok {
			if stamp, set := meta["creationTimestamp"]; set && stamp == nil {
				delete(meta, "creationTimestamp")
			}
		}
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	case []any:
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	}
}
