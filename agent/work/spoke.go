package work

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/names"
)

// spoke speaks to the API server of the spoke about one object at a time, always as the field manager of the agent.
type spoke struct {
	client dynamic.Interface
	// requests is the client below, for deletions, whose answers the other one throws away.
	requests rest.Interface
	// dryRun is the option of that name of all writes; empty for writes that take effect.
	dryRun []string
}

// at is the client of the namespace of an object, or of the cluster.
func (s spoke) at(resource schema.GroupVersionResource, id identity) dynamic.ResourceInterface {
	if id.Namespace == "" {
		return s.client.Resource(resource)
	}
	return s.client.Resource(resource).Namespace(id.Namespace)
}

// get reads an object; nil without error means that it does not exist. That its kind is not served is an error, which
// says nothing about the object.
func (s spoke) get(ctx context.Context, resource schema.GroupVersionResource, id identity,
) (*unstructured.Unstructured, error) {
	live, err := s.at(resource, id).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !kindGone(err) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return live, nil
}

// create makes an object.
func (s spoke) create(ctx context.Context, resource schema.GroupVersionResource, id identity,
	object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return s.at(resource, id).Create(ctx, object, metav1.CreateOptions{
		FieldManager: names.FieldManagerWork, DryRun: s.dryRun,
	})
}

// tryCreate returns why the API server would refuse the creation of an object that exists, nil when it would accept it:
// it answers that the object exists only after it accepted all else.
func (s spoke) tryCreate(ctx context.Context, resource schema.GroupVersionResource, id identity,
	object *unstructured.Unstructured,
) error {
	s.dryRun = []string{metav1.DryRunAll}
	_, err := s.create(ctx, resource, id, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// update replaces an object at the resourceVersion that it carries.
func (s spoke) update(ctx context.Context, resource schema.GroupVersionResource, id identity,
	object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return s.at(resource, id).Update(ctx, object, metav1.UpdateOptions{
		FieldManager: names.FieldManagerWork, DryRun: s.dryRun,
	})
}

// serverSideApply sends an object as an applied configuration.
func (s spoke) serverSideApply(ctx context.Context, resource schema.GroupVersionResource, id identity,
	object *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	return s.at(resource, id).Apply(ctx, id.Name, object, metav1.ApplyOptions{
		FieldManager: manager, Force: force, DryRun: s.dryRun,
	})
}

// setOwners writes the owner references of a live object, guarded by its UID and resourceVersion.
func (s spoke) setOwners(ctx context.Context, resource schema.GroupVersionResource, id identity,
	live metav1.Object, refs []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "ownerReferences": refs,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the owners of %s: %w", id, err)
	}
	return s.at(resource, id).Patch(ctx, id.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManagerWork, DryRun: s.dryRun})
}

// remove deletes an object if it still has the UID and, when given, the resourceVersion.
func (s spoke) remove(ctx context.Context, resource schema.GroupVersionResource, id identity,
	uid types.UID, version string,
) error {
	background := metav1.DeletePropagationBackground
	guard := &metav1.Preconditions{UID: &uid}
	if version != "" {
		guard.ResourceVersion = &version
	}
	return s.at(resource, id).Delete(ctx, id.Name,
		metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: guard, DryRun: s.dryRun})
}
