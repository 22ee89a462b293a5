package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// api asks the API server of the spoke what an executor may do.
type api struct {
	reviews     authorizationclient.SubjectAccessReviewInterface
	impersonate func(user string) (spoke.Client, error)

	mu sync.Mutex
	// clients are the impersonating clients, one for each executor that needed an escalation check. They are made when
	// first needed, since few works grant permissions.
	clients map[ServiceAccount]spoke.Client
}

// allowed asks whether the executor may use a verb on an object.
func (a *api) allowed(ctx context.Context, who ServiceAccount, q Question, verb string) (bool, error) {
	review, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.String(), Groups: who.groups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: q.Object.Group, Version: q.Version, Resource: q.Object.Resource,
				Namespace: q.Object.Namespace, Name: q.Object.Name, Verb: verb,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", who, verb, q.Object, err)
	}
	return review.Status.Allowed, nil
}

// as returns the client that impersonates the executor. The API server adds the groups of the executor.
func (a *api) as(who ServiceAccount) (spoke.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if client, known := a.clients[who]; known {
		return client, nil
	}
	client, err := a.impersonate(who.String())
	if err != nil {
		return spoke.Client{}, fmt.Errorf("building a client that impersonates %s: %w", who, err)
	}
	a.clients[who] = client
	return client, nil
}

// drop forgets the client of an executor.
func (a *api) drop(who ServiceAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, who)
}

// tryCreate creates the manifest, which grants permissions, as the executor and as a dry run. It returns the cause when
// the API server refuses that for the lack of permissions, and an empty cause when it does not. The API server checks
// for escalation before it looks whether the object exists, so "already exists" means that the executor has the
// permissions that the manifest grants; it says nothing about the object.
func (s *Session) tryCreate(ctx context.Context, client spoke.Client, q Question, object *unstructured.Unstructured,
) (cause string, err error) {
	_, err = client.At(q.resource(), q.Object).Create(ctx, object)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return "", nil
	case apierror.CannotImpersonate(err):
		return "", fmt.Errorf("trying as the executor whether it may make %s: %w", q.Object, err)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s may not hand out rights that it does not have", s.who), nil
	}
	if role, binds := q.boundRole(object); binds && roleMissing(err) {
		return fmt.Sprintf("%s may not bind %s, which does not exist, without the right to bind it", s.who, role), nil
	}
	return "", fmt.Errorf("trying whether the executor may make %s: %w", q.Object, err)
}

// roleMissing reports whether a new binding was refused because its role does not exist: the API server then cannot
// compare the rules of the role with the permissions of the user who binds it. The error names the role as if it were a
// binding; a namespace that does not exist is of another group, and the answer that a kind is not served has a cause.
func roleMissing(err error) bool {
	var status apierrors.APIStatus
	return reconcile.ObjectGone(err) &&
		errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Group == rbacv1.GroupName
}
