package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serves reports whether the hub serves a resource of a version.
func (h *Hub) Serves(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	raw, err := answer(ctx, h.client.Get().AbsPath(path))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for %s: %w: %w", path, unanswered(err, false), err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return false, fmt.Errorf("decoding %s: %w", path, err)
	}
	for _, one := range list.APIResources {
		if one.Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// May reports whether the user may do something. It stores nothing.
func (h *Hub) May(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, fmt.Errorf("encoding an access review: %w", err)
	}
	path := "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	raw, err := answer(ctx, h.client.Post().AbsPath(path).Body(body))
	if err != nil {
		return false, fmt.Errorf("asking what the user may do: %w: %w", unanswered(err, false), err)
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return false, fmt.Errorf("decoding an access review: %w", err)
	}
	return review.Status.Allowed, nil
}
