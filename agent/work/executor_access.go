package work

import (
	"context"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
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

// as speaks as the executor and without effect. The groups of the executor are for the API server to add.
func (a *access) as(who executor) (spoke, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if client := a.posing[who]; client != nil {
		return spoke{client: client, dryRun: []string{metav1.DryRunAll}}, nil
	}
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: who.String()}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return spoke{}, fmt.Errorf("building a client that speaks as %s: %w", who, err)
	}
	a.posing[who] = client
	return spoke{client: client, dryRun: []string{metav1.DryRunAll}}, nil
}

// drop forgets an executor.
func (a *access) drop(who executor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.posing, who)
}
