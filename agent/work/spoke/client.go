package spoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Client reads and writes objects of the spoke.
type Client struct {
	objects dynamic.Interface
	// requests is the client below the dynamic one, for deletions: the dynamic client drops the answer.
	requests rest.Interface
	// dryRun is the option of that name of all writes; empty for writes that take effect.
	dryRun []string
}

// NewClient returns a client of the API server of a configuration that sends its requests with an HTTP client.
func NewClient(config *rest.Config, client *http.Client) (Client, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/every-request-has-a-path-of-its-own"
	within := *client
	within.Transport = shares{next: cmp.Or(client.Transport, http.DefaultTransport)}
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, &within)
	if err != nil {
		return Client{}, fmt.Errorf("building the client of the spoke: %w", err)
	}
	return Client{objects: dynamic.New(requests), requests: requests}, nil
}

// DryRun returns the client with writes that have no effect.
func (c Client) DryRun() Client {
	c.dryRun = []string{metav1.DryRunAll}
	return c
}

// at is the dynamic client of an object's namespace, or of the cluster.
func (c Client) at(resource schema.GroupVersionResource, id manifest.ID) dynamic.ResourceInterface {
	if id.Namespace == "" {
		return c.objects.Resource(resource)
	}
	return c.objects.Resource(resource).Namespace(id.Namespace)
}

// Get reads an object; nil without error means that it does not exist. That its kind is not served is an error, because
// then nothing is known about the object.
func (c Client) Get(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
) (*unstructured.Unstructured, error) {
	live, err := c.at(resource, id).Get(ctx, id.Name, metav1.GetOptions{})
	if reconcile.ObjectGone(err) {
		return nil, nil // absence is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return live, nil
}

// Create creates an object.
func (c Client) Create(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return c.at(resource, id).Create(ctx, object, metav1.CreateOptions{
		FieldManager: names.FieldManagerWork, DryRun: c.dryRun,
	})
}

// TryCreate returns why the API server would refuse to create an object that exists; nil when it would accept it. The
// API server reports that the object exists only after it accepted everything else.
func (c Client) TryCreate(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	object *unstructured.Unstructured,
) error {
	_, err := c.DryRun().Create(ctx, resource, id, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Update replaces an object at its resourceVersion.
func (c Client) Update(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return c.at(resource, id).Update(ctx, object, metav1.UpdateOptions{
		FieldManager: names.FieldManagerWork, DryRun: c.dryRun,
	})
}

// Apply sends an object as an applied configuration of a field manager.
func (c Client) Apply(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	object *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	return c.at(resource, id).Apply(ctx, id.Name, object, metav1.ApplyOptions{
		FieldManager: manager, Force: force, DryRun: c.dryRun,
	})
}

// SetOwners writes the owner references of a live object, guarded by its UID and resourceVersion.
func (c Client) SetOwners(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	live metav1.Object, refs []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	return c.patchMeta(ctx, resource, id, live, "ownerReferences", refs)
}

// SetManagers writes the managed fields of a live object, guarded by its UID and resourceVersion.
func (c Client) SetManagers(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	live metav1.Object, entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	return c.patchMeta(ctx, resource, id, live, "managedFields", entries)
}

// patchMeta writes one field of the metadata of a live object, guarded by its UID and resourceVersion.
func (c Client) patchMeta(ctx context.Context, resource schema.GroupVersionResource, id manifest.ID,
	live metav1.Object, field string, value any,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), field: value,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the %s of %s: %w", field, id, err)
	}
	return c.at(resource, id).Patch(ctx, id.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManagerWork, DryRun: c.dryRun})
}
