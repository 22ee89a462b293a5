package executor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Shows: work/executor-changes-heard
func TestWhomAChangeOfRBACConcerns(t *testing.T) {
	bound := func(namespace string, subjects ...string) scopedBinding {
		return scopedBinding{binding{role: roleKey{Name: "r"}, subjects: subjects}, namespace}
	}
	for name, c := range map[string]struct {
		change rbacChange
		// concerns is about the namespace app, touches about any.
		concerns, touches bool
	}{
		"a binding of the account":                 {rbacChange{bindings: []scopedBinding{bound("", deployer.String())}}, true, true},
		"one of two bindings":                      {rbacChange{bindings: []scopedBinding{bound("", "other"), bound("", deployer.String())}}, true, true},
		"a binding of one of its groups":           {rbacChange{bindings: []scopedBinding{bound("", groupPrefix+"system:serviceaccounts:ns")}}, true, true},
		"a binding of all who are authenticated":   {rbacChange{bindings: []scopedBinding{bound("", groupPrefix+"system:authenticated")}}, true, true},
		"a binding of another account":             {rbacChange{bindings: []scopedBinding{bound("", "system:serviceaccount:ns:other")}}, false, false},
		"a binding of a user named like its group": {rbacChange{bindings: []scopedBinding{bound("", "system:authenticated")}}, false, false},
		"a binding in the namespace of the object": {rbacChange{bindings: []scopedBinding{bound("app", deployer.String())}}, true, true},
		"a binding in another namespace":           {rbacChange{bindings: []scopedBinding{bound("other", deployer.String())}}, false, true},
		"a role that nobody is bound to":           {rbacChange{role: roleKey{Name: "r"}}, false, false},
		"a time in which changes were not seen":    {rbacChange{everyone: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.concerns, c.change.concerns(deployer, "app"))
			assert.Equal(t, c.touches, c.change.touches(deployer))
		})
	}
}

func TestTheSubjectsOfABinding(t *testing.T) {
	b := bindingOf(rbacv1.RoleRef{Kind: "Role", Name: "r"}, []rbacv1.Subject{
		{Kind: "User", Name: "zoe"}, {Kind: "Group", Name: "devs"}, {Kind: "ServiceAccount", Name: "a"},
		{Kind: "ServiceAccount", Namespace: "other", Name: "b"}, {Kind: "Machine", Name: "c"},
	}, "ns")
	assert.Equal(t, roleKey{Namespace: "ns", Name: "r"}, b.role)
	assert.Equal(t, []string{"group devs", "system:serviceaccount:ns:a", "system:serviceaccount:other:b", "zoe"}, b.subjects)
	assert.Equal(t, "Role ns/r", b.role.String())
	assert.Equal(t, "ClusterRole r", bindingOf(rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, nil, "ns").role.String())
}

// record returns an RBAC and the changes that it reports.
func record() (*rbacState, *[]rbacChange) {
	var changes []rbacChange
	return newRBACState(func(c rbacChange) { changes = append(changes, c) }), &changes
}

// Shows: work/executor-bindings
func TestAClusterRoleCountsWhereItIsBound(t *testing.T) {
	r, changes := record()
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}
	one := bindingOf(ref, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "deployer"}}, "ns")
	r.setBinding(bindingKey{Namespace: "ns", Name: "b"}, &one)
	r.roleChanged(roleKey{Name: "edit"})
	require.Len(t, *changes, 2)
	for _, c := range *changes {
		assert.True(t, c.concerns(deployer, "ns"), "a subject without a namespace is of that of its binding")
		assert.False(t, c.concerns(deployer, "app"))
		assert.True(t, c.touches(deployer))
	}
}

func TestABindingConcernsThoseBeforeAndAfter(t *testing.T) {
	r, changes := record()
	key := bindingKey{Namespace: "app", Name: "b"}
	other := ServiceAccount{Namespace: "ns", Name: "other"}
	for _, c := range []struct {
		now             *binding
		deployer, other bool
	}{
		{&binding{subjects: []string{deployer.String()}}, true, false},
		{&binding{subjects: []string{other.String()}}, true, true},
		{&binding{subjects: []string{other.String()}, role: roleKey{Name: "r"}}, false, true},
		{nil, false, true},
	} {
		*changes = nil
		r.setBinding(key, c.now)
		require.Len(t, *changes, 1)
		assert.Equal(t, c.deployer, (*changes)[0].concerns(deployer, "app"))
		assert.Equal(t, c.other, (*changes)[0].concerns(other, "app"))
	}
	*changes = nil
	r.setBinding(key, nil)
	assert.Empty(t, *changes, "it was gone before")
}

func TestRBACReportsChanges(t *testing.T) {
	r, changes := record()
	role := roleKey{Name: "r"}
	one := binding{role: role, subjects: []string{deployer.String()}}
	r.setBinding(bindingKey{Name: "b"}, &one)
	require.Len(t, *changes, 1)
	r.setBinding(bindingKey{Name: "b"}, &one)
	assert.Len(t, *changes, 1, "a change of its metadata concerns nobody")

	r.roleChanged(role)
	require.Len(t, *changes, 2)
	assert.True(t, (*changes)[1].concerns(deployer, "anywhere"))
	assert.Equal(t, role, (*changes)[1].role)
	r.roleChanged(roleKey{Namespace: "app", Name: "r"})
	assert.False(t, (*changes)[2].touches(deployer), "a Role is not the ClusterRole of that name")
}

func TestAListReplacesTheBindingsOfItsWatch(t *testing.T) {
	r, changes := record()
	role := roleKey{Name: "r"}
	one := binding{role: role, subjects: []string{deployer.String()}}
	for _, from := range []rbacSource{roles, clusterRoles, roleBindings} {
		r.listed(from, map[bindingKey]binding{{Namespace: "app", Name: "b"}: one})
		assert.False(t, r.watched())
	}
	assert.Empty(t, *changes, "not all watches are complete")
	r.listed(clusterRoleBindings, map[bindingKey]binding{{Name: "b"}: one})
	assert.True(t, r.watched())
	require.Len(t, *changes, 1)
	assert.True(t, (*changes)[0].everyone)

	concerned := func(namespace string) bool {
		*changes = nil
		r.roleChanged(role)
		return (*changes)[0].concerns(deployer, namespace)
	}
	assert.True(t, concerned("other"), "by the ClusterRoleBinding")
	r.listed(clusterRoleBindings, nil)
	assert.False(t, concerned("other"))
	assert.True(t, concerned("app"), "the RoleBinding is left")
	r.listed(roles, nil)
	assert.True(t, concerned("app"), "roles have no bindings")
	r.listed(roleBindings, nil)
	assert.False(t, concerned("app"))

	r.interrupted(roles)
	assert.False(t, r.watched())
	r.listed(roles, nil)
	assert.True(t, r.watched())
	r.setBinding(bindingKey{Name: "b"}, &one)
	r.clear()
	assert.False(t, r.watched())
	assert.False(t, concerned("app"))
}
