package deploy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// everywhere is in front of the other permissions of the file.
const everywhere = "          - type: CurrentCluster\n"

// wide returns the ClusterRoleBinding of the agent; nil when there is none.
func (f fixture) wide(ctx context.Context) *rbacv1.ClusterRoleBinding {
	found := &rbacv1.ClusterRoleBinding{}
	name := "open-cluster-management:" + f.addOn + ":clusterrole:" + f.cluster + ":agent"
	if plane.Client.Get(ctx, client.ObjectKey{Name: name}, found) != nil {
		return nil
	}
	return found
}

// touched changes the add-on until something is true: the API server needs a moment to know of a grant.
func (f fixture) touched(t *testing.T, why string, is func() bool) {
	t.Helper()
	n := 0
	suite.Eventually(t, func() error {
		n++
		f.annotate(t, "touched", string(rune('a'+n%26)))
		if !is() {
			return fmt.Errorf("%s: %+v", why, f.get(t.Context()).Status.Conditions)
		}
		return nil
	})
}

// consent grants verbs on ClusterRoles to the account of add-ons; without names, on all.
func consent(t *testing.T, name string, verbs []string, roles ...string) {
	t.Helper()
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: roles, Verbs: verbs,
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{
				Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons,
			}},
		},
	} {
		require.NoError(t, plane.Client.Create(t.Context(), object))
	}
}

// TestARoleInAllNamespacesIsBoundWithItsOwnConsentOnly asks for a role in all namespaces to which an administrator
// consented in the namespaces of clusters.
//
// Shows: hub/all-namespaces, hub/all-namespaces-consent
func TestARoleInAllNamespacesIsBoundWithItsOwnConsentOnly(t *testing.T) { // not parallel: it grants rights on all roles
	ctx := t.Context()
	with := "          - {type: AllNamespaces, allNamespaces: {clusterRoleName: wide-admin}}\n" + everywhere
	f := install(t, "wide", everywhere, with)
	f.says(t, "RegistrationApplied", metav1.ConditionFalse, "SetPermissionFailed",
		"ClusterRole wide-admin cannot be bound for the agent in all namespaces: no administrator",
		"kubectl create clusterrole bind-wide-admin-everywhere --verb=bind,bind-in-all-namespaces ")
	f.work(t, nil)
	assert.NotNil(t, binding(ctx, f.cluster, "open-cluster-management:wide:clusterrole:agent"), "the rest is granted")
	assert.Nil(t, f.wide(ctx))

	consent(t, "wide-all", []string{"*"})
	for range 5 {
		f.annotate(t, "touched", "again")
		f.annotate(t, "touched", "and-again")
		f.condition(t, "RegistrationApplied", metav1.ConditionFalse, "SetPermissionFailed")
		assert.Nil(t, f.wide(ctx), "a right on all roles is no consent to one")
	}
	require.NoError(t, plane.Client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "wide-all"}}))
	consent(t, "wide-one", []string{"bind", "bind-in-all-namespaces"}, "wide-admin")
	f.touched(t, "the role is bound once an administrator consented", func() bool { return f.wide(ctx) != nil })
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	bound := f.wide(ctx)
	assert.Equal(t, group("system:open-cluster-management:cluster:wide-cluster:addon:wide"), bound.Subjects)
	assert.Equal(t, "wide-admin", bound.RoleRef.Name)

	// It is repaired, goes when nothing asks for it, and comes back.
	stranger := bound.DeepCopy()
	stranger.Subjects = append(stranger.Subjects, group("strangers")...)
	require.NoError(t, plane.Client.Update(ctx, stranger))
	suite.Eventually(t, suite.True("a stranger goes", func() bool {
		is := f.wide(ctx)
		return is != nil && len(is.Subjects) == 1
	}))
	f.apply(t)
	suite.Eventually(t, suite.True("the template does not ask for it", func() bool { return f.wide(ctx) == nil }))
	f.apply(t, everywhere, with)
	suite.Eventually(t, suite.True("it does again", func() bool { return f.wide(ctx) != nil }))

	// The agent of a cluster that is denied has none.
	accept := func(accepted string) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hubAcceptsClient":`+accepted+`}}`))
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster}}
		require.NoError(t, plane.Client.Patch(ctx, cluster, patch))
	}
	accept("false")
	suite.Eventually(t, suite.True("the cluster is denied", func() bool { return f.wide(ctx) == nil }))
	accept("true")
	suite.Eventually(t, suite.True("it is accepted", func() bool { return f.wide(ctx) != nil }))

	addOn := f.get(ctx)
	require.NoError(t, plane.AddOns.DeleteAddOn(ctx, addOn))
	suite.Eventually(t, suite.True("the add-on is gone", func() bool { return f.wide(ctx) == nil }))
}
