package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestTheAccessOfAnAcceptedClusterIsThatOfTheContract(t *testing.T) {
	g := renderGrants("c1", true)

	assert.Equal(t, "open-cluster-management:managedcluster:c1", g.role.Name)
	assert.Equal(t, []rbacv1.PolicyRule{
		{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"},
			Verbs: []string{"create", "get", "list", "watch"},
		},
		{
			APIGroups: []string{"register.open-cluster-management.io"},
			Resources: []string{"managedclusters/clientcertificates"}, Verbs: []string{"renew"},
		},
		{
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
			ResourceNames: []string{"c1"}, Verbs: []string{"get", "list", "update", "watch"},
		},
		{
			APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters/status"},
			ResourceNames: []string{"c1"}, Verbs: []string{"patch", "update"},
		},
	}, g.role.Rules)

	groups := []rbacv1.Subject{
		{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "system:open-cluster-management:c1"},
		{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "open-cluster-management:c1"},
	}
	assert.Equal(t, g.role.Name, g.binding.Name)
	assert.Equal(t, g.role.Name, g.binding.RoleRef.Name)
	assert.Equal(t, groups, g.binding.Subjects)

	assert.Equal(t, "open-cluster-management:managedcluster:c1:registration", g.registration.Name)
	assert.Equal(t, "open-cluster-management:managedcluster:registration", g.registration.RoleRef.Name)
	assert.Empty(t, g.registration.Finalizers)
	assert.Equal(t, "open-cluster-management:managedcluster:c1:work", g.work.Name)
	assert.Equal(t, "open-cluster-management:managedcluster:work", g.work.RoleRef.Name)
	assert.Equal(t, []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}, g.work.Finalizers)
	for _, b := range []*rbacv1.RoleBinding{g.registration, g.work} {
		assert.Equal(t, "c1", b.Namespace)
		assert.Equal(t, groups, b.Subjects)
		assert.Equal(t, map[string]string{names.LabelClusterName: "c1"}, b.Labels)
	}
}

func TestTheAccessOfADeniedClusterIsToReadItself(t *testing.T) {
	g := renderGrants("c1", false)
	assert.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"},
		ResourceNames: []string{"c1"}, Verbs: []string{"get", "list", "watch"},
	}}, g.role.Rules)
	assert.NotNil(t, g.binding)
	assert.Nil(t, g.registration)
	assert.Nil(t, g.work)
}

func TestRenderingOneClusterDoesNotTouchTheLabelsOfAnother(t *testing.T) {
	a := renderGrants("a", true)
	renderGrants("b", false)
	assert.Equal(t, "a", a.role.Labels[names.LabelClusterName])
}

func TestTheSharedRolesAreThoseOfTheContract(t *testing.T) {
	roles := sharedRoles()
	require.Len(t, roles, 2)
	for _, role := range roles {
		assert.Equal(t, map[string]string{names.LabelClusterName: ""}, role.Labels)
	}
	assert.Equal(t, roleRegistration, roles[0].Name)
	assert.Equal(t, []rbacv1.PolicyRule{
		rule("coordination.k8s.io", "leases", "get", "list", "watch"),
		named(rule("coordination.k8s.io", "leases", "update"), "managed-cluster-lease"),
		rule("addon.open-cluster-management.io", "managedclusteraddons", "get", "list", "watch"),
		rule("addon.open-cluster-management.io", "managedclusteraddons/status", "patch", "update"),
		rule("events.k8s.io", "events", "create"),
	}, roles[0].Rules)
	assert.Equal(t, roleWork, roles[1].Name)
	assert.Equal(t, []rbacv1.PolicyRule{
		{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch", "update"},
		},
		rule("work.open-cluster-management.io", "manifestworks", "get", "list", "watch", "update", "patch"),
		rule("work.open-cluster-management.io", "manifestworks/status", "patch", "update"),
	}, roles[1].Rules)
}

func TestNames(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"an ordinary name is usable":                  {"cluster1", ""},
		"the name of OCM's own hub cluster is usable": {"local-cluster", ""},
		"the group of all clusters is reserved":       {"managed-clusters", "reserved"},
		"the role for works is reserved":              {"work", "reserved"},
		"the role for registration is reserved":       {"registration", "reserved"},
		"the namespace of Kubernetes is reserved":     {"kube-system", "reserved"},
		"the namespace of the hub is reserved":        {names.NamespaceHub, "reserved"},
		"a name with a dot is no namespace":           {"a.b", "namespace"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := names.CheckCluster(tc.name)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "another name")
		})
	}
}

func TestNoClusterSharesARoleOrGroupWithAllClusters(t *testing.T) {
	for _, role := range sharedRoles() {
		require.Error(t, names.CheckCluster(role.Name[len(rolePrefix):]))
	}
}
