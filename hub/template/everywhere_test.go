package template

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
)

// asking returns a template for add-on a that asks for a role in the namespace of the cluster, and for others in all
// namespaces.
func asking(t *testing.T, everywhere ...string) *Template {
	t.Helper()
	u := templateObject("t", "a", "x")
	permissions := []any{map[string]any{"type": "CurrentCluster", "currentCluster": map[string]any{"clusterRoleName": "here"}}}
	for _, role := range everywhere {
		permissions = append(permissions, map[string]any{
			"type": "AllNamespaces", "allNamespaces": map[string]any{"clusterRoleName": role},
		})
	}
	require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{
		map[string]any{"type": "KubeClient"},
		map[string]any{"type": "KubeClient", "kubeClient": map[string]any{"hubPermissions": permissions}},
	}, "spec", "registration"))
	read, err := ReadTemplate(u)
	require.NoError(t, err)
	return read
}

// Shows: hub/all-namespaces
func TestATemplateAsksForARoleInAllNamespaces(t *testing.T) {
	of := asking(t, "one", "two")
	got, err := Permissions(of, "c1", "a")
	require.NoError(t, err)
	group := []rbacv1.Subject{{
		APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:open-cluster-management:cluster:c1:addon:a",
	}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}
	}
	assert.Equal(t, []addon.Permission{
		{Namespace: "c1", RoleRef: role("here"), Subjects: group},
		{AllNamespaces: true, RoleRef: role("one"), Subjects: group},
		{AllNamespaces: true, RoleRef: role("two"), Subjects: group},
	}, got)
	require.NoError(t, CheckTrust(of, "c1", "a", "home"))

	require.ErrorContains(t, Withheld(of, "other"), "so its hub permissions")
	got, err = Permissions(of.trusted("other"), "c1", "other")
	require.NoError(t, err)
	assert.Empty(t, got, "nothing for another add-on")

	for _, forbidden := range []string{"cluster-admin", "system:node", "open-cluster-management:spokelet-hub"} {
		err := CheckTrust(asking(t, forbidden), "c1", "a", "home")
		require.ErrorContains(t, err, "never bound for an add-on", forbidden)
		assert.True(t, addon.IsInvalid(err))
	}
}
