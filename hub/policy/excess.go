package policy

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// excess are rights on the hub that no add-on needs. A user who has one of them was granted more than roles of add-ons:
// on a hub that comes from OCM, the ClusterRoles of its add-on manager.
func excess() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "list", Resource: "secrets"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: "kubernetes.io/kube-apiserver-client"},
		{Verb: "update", Group: "register.open-cluster-management.io", Resource: "managedclusters", Subresource: "accept"},
		{Verb: "create", Group: "work.open-cluster-management.io", Resource: "manifestworks"},
		{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	}
}

// Excess lists the rights of an account of add-ons in all namespaces that no add-on needs, and that templates may pass
// on. It creates access reviews.
func Excess(ctx context.Context, c client.Client, user string) ([]string, error) {
	var found []string
	for _, attributes := range excess() {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &attributes, Groups: groupsOf(user),
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("asking what %s may do: %w", user, err)
		}
		if review.Status.Allowed {
			what := attributes.Resource
			if attributes.Subresource != "" {
				what += "/" + attributes.Subresource
			}
			found = append(found, attributes.Verb+" "+what)
		}
	}
	return found, nil
}

// groupsOf returns the groups of a ServiceAccount.
func groupsOf(user string) []string {
	namespace, _, ok := serviceAccount(user)
	if !ok {
		return nil
	}
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}
