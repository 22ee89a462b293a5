package attacks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestTheAccountOfAddOnsBindsNoRoleInAllNamespacesWithoutAConsentForThat has a role to which an administrator consented
// by its label, and one to which an administrator consented in all namespaces.
//
// Shows: security/all-namespaces
func TestTheAccountOfAddOnsBindsNoRoleInAllNamespacesWithoutAConsentForThat(t *testing.T) {
	ctx := t.Context()
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons}}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	endsAfterwards(t, "cluster-admin")
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "wide-labelled", Labels: map[string]string{names.LabelHubPermission: "true"}},
			Rules:      rules,
		},
		&rbacv1.ClusterRole{ObjectMeta: in("", "wide-named"), Rules: rules},
		&rbacv1.ClusterRole{ObjectMeta: in("", "bind-wide"), Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
				ResourceNames: []string{"wide-named", "cluster-admin"}, Verbs: []string{"bind", "bind-in-all-namespaces"},
			},
			{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
				ResourceNames: []string{"wide-labelled"}, Verbs: []string{"bind"},
			},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: in("", "bind-wide"), Subjects: account,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bind-wide"},
		},
		// An administrator made it, and labelled it as one of an add-on.
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "wide-of-others", Labels: map[string]string{
				names.LabelAddonName: "wide", names.LabelAddonTemplate: "", names.LabelClusterName: "cluster1",
			}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "wide-named"},
		},
	} {
		require.NoError(t, shared.admin.Create(ctx, object))
		deleteAfterwards(t, object)
	}
	groups := csr.AddonGroups("cluster1", "wide")
	binding := func(name, cluster, role, group string) *rbacv1.ClusterRoleBinding {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				names.LabelAddonName: "wide", names.LabelAddonTemplate: "",
			}},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		if cluster != "" {
			binding.Labels[names.LabelClusterName] = cluster
		}
		return binding
	}
	bind := func(name, cluster, role, group string) attempt {
		made := binding(name, cluster, role, group)
		return func(ctx context.Context, c client.Client) error { return c.Create(ctx, made, client.DryRunAll) }
	}
	const name = "open-cluster-management:wide:clusterrole:cluster1:agent"
	allowed := bind(name, "cluster1", "wide-named", groups[0])
	suite.Eventually(t, func() error { return allowed(ctx, shared.clients[theAddOns]) })
	for sentence, try := range map[string]attempt{
		"a role that is consented to elsewhere":     bind(name, "cluster1", "wide-labelled", groups[0]),
		"a role of Kubernetes, whoever granted it":  bind(name, "cluster1", "cluster-admin", groups[0]),
		"the agents of all clusters":                bind(name, "cluster1", "wide-named", groups[1]),
		"the agent of another cluster":              bind(name, "cluster10", "wide-named", groups[0]),
		"an agent of a cluster that no label names": bind(name, "", "wide-named", groups[0]),
		"everybody":                                  bind(name, "cluster1", "wide-named", "system:authenticated"),
		"an agent, by a name that others have":       bind("wide", "cluster1", "wide-named", groups[0]),
		"an agent, by the name of another cluster's": bind(name+"0", "cluster1", "wide-named", groups[0]),
		"a ServiceAccount of a namespace that a label calls a cluster": func(ctx context.Context, c client.Client) error {
			made := binding("open-cluster-management:wide:clusterrole:default:agent", "default", "wide-named", groups[0])
			made.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "wide-agent"}}
			return c.Create(ctx, made, client.DryRunAll)
		},
		"a binding that its deletion does not end": func(ctx context.Context, c client.Client) error {
			kept := binding(name, "cluster1", "wide-named", groups[0])
			kept.Finalizers = []string{"example.com/keep"}
			return c.Create(ctx, kept, client.DryRunAll)
		},
		"a binding with an owner in a namespace": func(ctx context.Context, c client.Client) error {
			owned := binding(name, "cluster1", "wide-named", groups[0])
			owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "wide", UID: "u"}}
			return c.Create(ctx, owned, client.DryRunAll)
		},
		"a binding of others goes": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: in("", "wide-of-others")}, client.DryRunAll)
		},
		"a binding of the hub goes": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: in("", "cluster-admin")}, client.DryRunAll)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := try(t.Context(), shared.clients[theAddOns])
			require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
			assert.Contains(t, err.Error(), policyAddOns)
		})
	}
	require.NoError(t, allowed(ctx, shared.clients[theAddOns]))
}

// endsAfterwards waits at the end of a test, when all that it deletes is gone, until the account of add-ons may not bind
// a role any more: other tests ask for that role without a grant.
func endsAfterwards(t *testing.T, role string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		assert.NoError(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountAddons,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: role,
				},
			}}
			err := shared.admin.Create(ctx, review)
			return !review.Status.Allowed, err
		}))
	})
}
