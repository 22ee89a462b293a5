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

// Client has the objects of the spoke.
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

// Object is one object of the spoke, which may not exist.
type Object struct {
	client   Client
	resource schema.GroupVersionResource
	id       manifest.ID
}

// At returns the object with an ID, in the version of a resource.
func (c Client) At(resource schema.GroupVersionResource, id manifest.ID) Object {
	return Object{client: c, resource: resource, id: id}
}

// endpoint is the dynamic client of the object's namespace, or of the cluster.
func (o Object) endpoint() dynamic.ResourceInterface {
	if o.id.Namespace == "" {
		return o.client.objects.Resource(o.resource)
	}
	return o.client.objects.Resource(o.resource).Namespace(o.id.Namespace)
}

// Get reads the object; nil without error means that it does not exist. That its kind is not served is an error,
// because then nothing is known about the object.
func (o Object) Get(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := o.endpoint().Get(ctx, o.id.Name, metav1.GetOptions{})
	if reconcile.ObjectGone(err) {
		return nil, nil // absence is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.id, err)
	}
	return live, nil
}

// Create creates the object.
func (o Object) Create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return o.endpoint().Create(ctx, object, metav1.CreateOptions{
		FieldManager: names.FieldManagerWork, DryRun: o.client.dryRun,
	})
}

// TryCreate returns why the API server would refuse to create the object, which exists; nil when it would accept it.
// The API server reports that the object exists only after it accepted everything else.
func (o Object) TryCreate(ctx context.Context, object *unstructured.Unstructured) error {
	o.client = o.client.DryRun()
	_, err := o.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Update replaces the object at its resourceVersion.
func (o Object) Update(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return o.endpoint().Update(ctx, object, metav1.UpdateOptions{
		FieldManager: names.FieldManagerWork, DryRun: o.client.dryRun,
	})
}

// Apply sends the object as an applied configuration of a field manager.
func (o Object) Apply(ctx context.Context, object *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	return o.endpoint().Apply(ctx, o.id.Name, object, metav1.ApplyOptions{
		FieldManager: manager, Force: force, DryRun: o.client.dryRun,
	})
}

// SetOwners writes the owner references of the object, guarded by the UID and resourceVersion of live.
func (o Object) SetOwners(ctx context.Context, live metav1.Object, refs []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	return o.patchMeta(ctx, live, "ownerReferences", refs)
}

// SetManagers writes the managed fields of the object, guarded by the UID and resourceVersion of live.
func (o Object) SetManagers(ctx context.Context, live metav1.Object, entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	return o.patchMeta(ctx, live, "managedFields", entries)
}

// patchMeta writes one field of the metadata of the object, guarded by the UID and resourceVersion of live.
func (o Object) patchMeta(ctx context.Context, live metav1.Object, field string, value any,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), field: value,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the %s of %s: %w", field, o.id, err)
	}
	return o.endpoint().Patch(ctx, o.id.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: names.FieldManagerWork, DryRun: o.client.dryRun})
}
