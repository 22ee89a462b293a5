package work

import (
	"context"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/names"
)

// access asks the API server of the spoke what an executor may do.
type access struct {
	config  *rest.Config
	reviews authorizationclient.SubjectAccessReviewInterface

	mu sync.Mutex
	// posing has one client for each executor that had to show that it holds the rights which it hands out. They are
	// made when first needed, since few works hand out rights, and share the connections of the agent.
	posing map[executor]dynamic.Interface
}

// allowed asks whether the executor may do something with the object of a task.
func (a *access) allowed(ctx context.Context, who executor, t *task, verb string) (bool, error) {
	id := t.id()
	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.String(), Groups: who.groups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: id.Group, Version: t.resource.Version, Resource: id.Resource,
				Namespace: id.Namespace, Name: id.Name, Verb: verb,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", who, verb, id, err)
	}
	return review.Status.Allowed, nil
}

// dares tells whether the API server would let the executor make the object of a task, which hands out rights. Such an
// object is checked before it is looked whether it exists, so that "exists" means yes.
func (a *access) dares(ctx context.Context, who executor, t *task) (bool, error) {
	object, err := t.desired()
	if err != nil {
		return false, err
	}
	client, err := a.as(who)
	if err != nil {
		return false, err
	}
	_, err = spoke{client: client}.at(t.resource, t.id()).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: names.FieldManagerWork,
	})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return true, nil
	case apierrors.IsForbidden(err):
		return false, nil
	}
	return false, fmt.Errorf("trying whether %s may make %s: %w", who, t.id(), err)
}

// as is a client that speaks as the executor. Its groups are for the API server to add.
func (a *access) as(who executor) (dynamic.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if client := a.posing[who]; client != nil {
		return client, nil
	}
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: who.String()}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client that speaks as %s: %w", who, err)
	}
	a.posing[who] = client
	return client, nil
}

// drop forgets an executor.
func (a *access) drop(who executor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.posing, who)
}
