package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Edit is a change of one object as a JSON patch, or a new object.
type Edit struct {
	Resource Resource
	Name     string
	// New is the object to create; nil for a change.
	New any
	// Part is a subresource; empty for the object itself.
	Part       string
	Operations []Operation
}

// Operation is an operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Write carries out an edit of an object without a namespace; dry asks the API server to check it alone. The error is
// an APIStatus where the API server refused it.
func (h *Hub) Write(ctx context.Context, e Edit, dry bool) error {
	path, err := h.path(ctx, Query{Resource: e.Resource})
	if err != nil {
		return err
	}
	if e.New != nil {
		return h.create(ctx, e, path, dry)
	}
	path += "/" + e.Name
	if e.Part != "" {
		path += "/" + e.Part
	}
	body, err := json.Marshal(e.Operations)
	if err != nil {
		return fmt.Errorf("encoding the change of %s %s: %w", e.Resource, e.Name, err)
	}
	request := h.client.Patch(types.JSONPatchType).AbsPath(path).Body(body)
	if dry {
		request.Param("dryRun", metav1.DryRunAll)
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("changing %s %s: %w", e.Resource, e.Name, err)
	}
	return nil
}

// create creates the new object of an edit.
func (h *Hub) create(ctx context.Context, e Edit, path string, dry bool) error {
	body, err := json.Marshal(e.New)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", e.Resource, e.Name, err)
	}
	request := h.client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body)
	if dry {
		request.Param("dryRun", metav1.DryRunAll)
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("creating %s %s: %w", e.Resource, e.Name, err)
	}
	return nil
}
