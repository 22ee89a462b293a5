package executor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Weakness: W21
func TestWhomAChangeOfRBACConcerns(t *testing.T) {
	bound := func(namespace string, subjects ...string) scopedBinding {
		return scopedBinding{Binding{role: RoleKey{Name: "r"}, subjects: subjects}, namespace}
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
		"a role that nobody is bound to":           {rbacChange{role: RoleKey{Name: "r"}}, false, false},
		"a time in which changes were not seen":    {rbacChange{everyone: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.concerns, c.change.concerns(deployer, "app"))
			assert.Equal(t, c.touches, c.change.touches(deployer))
		})
	}
}

func TestTheSubjectsOfABinding(t *testing.T) {
	b := NewBinding(rbacv1.RoleRef{Kind: "Role", Name: "r"}, []rbacv1.Subject{
		{Kind: "User", Name: "zoe"}, {Kind: "Group", Name: "devs"}, {Kind: "ServiceAccount", Name: "a"},
		{Kind: "ServiceAccount", Namespace: "other", Name: "b"}, {Kind: "Machine", Name: "c"},
	}, "ns")
	assert.Equal(t, RoleKey{Namespace: "ns", Name: "r"}, b.role)
	assert.Equal(t, []string{"group devs", "system:serviceaccount:ns:a", "system:serviceaccount:other:b", "zoe"}, b.subjects)
	assert.Equal(t, "Role ns/r", b.role.String())
	assert.Equal(t, "ClusterRole r", NewBinding(rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, nil, "ns").role.String())
}

// record returns an RBAC and the changes that it reports.
func record() (*RBAC, *[]rbacChange) {
	var changes []rbacChange
	return newRBAC(func(c rbacChange) { changes = append(changes, c) }), &changes
}

// Row: work 6.1 AU basic, cache, store tests: cluster role via RoleBinding
func TestAClusterRoleCountsWhereItIsBound(t *testing.T) {
	r, changes := record()
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}
	one := NewBinding(ref, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "deployer"}}, "ns")
	r.SetBinding(BindingKey{Namespace: "ns", Name: "b"}, &one)
	r.RoleChanged(RoleKey{Name: "edit"})
	require.Len(t, *changes, 2)
	for _, c := range *changes {
		assert.True(t, c.concerns(deployer, "ns"), "a subject without a namespace is of that of its binding")
		assert.False(t, c.concerns(deployer, "app"))
		assert.True(t, c.touches(deployer))
	}
}

func TestABindingConcernsThoseBeforeAndAfter(t *testing.T) {
	r, changes := record()
	key := BindingKey{Namespace: "app", Name: "b"}
	other := ServiceAccount{Namespace: "ns", Name: "other"}
	for _, c := range []struct {
		now             *Binding
		deployer, other bool
	}{
		{&Binding{subjects: []string{deployer.String()}}, true, false},
		{&Binding{subjects: []string{other.String()}}, true, true},
		{&Binding{subjects: []string{other.String()}, role: RoleKey{Name: "r"}}, false, true},
		{nil, false, true},
	} {
		*changes = nil
		r.SetBinding(key, c.now)
		require.Len(t, *changes, 1)
		assert.Equal(t, c.deployer, (*changes)[0].concerns(deployer, "app"))
		assert.Equal(t, c.other, (*changes)[0].concerns(other, "app"))
	}
	*changes = nil
	r.SetBinding(key, nil)
	assert.Empty(t, *changes, "it was gone before")
}

func TestRBACReportsChanges(t *testing.T) {
	r, changes := record()
	role := RoleKey{Name: "r"}
	one := Binding{role: role, subjects: []string{deployer.String()}}
	r.SetBinding(BindingKey{Name: "b"}, &one)
	require.Len(t, *changes, 1)
	r.SetBinding(BindingKey{Name: "b"}, &one)
	assert.Len(t, *changes, 1, "a change of its metadata concerns nobody")

	r.RoleChanged(role)
	require.Len(t, *changes, 2)
	assert.True(t, (*changes)[1].concerns(deployer, "anywhere"))
	assert.Equal(t, role, (*changes)[1].role)
	r.RoleChanged(RoleKey{Namespace: "app", Name: "r"})
	assert.False(t, (*changes)[2].touches(deployer), "a Role is not the ClusterRole of that name")
}

func TestAListReplacesTheBindingsOfItsWatch(t *testing.T) {
	r, changes := record()
	role := RoleKey{Name: "r"}
	one := Binding{role: role, subjects: []string{deployer.String()}}
	for _, from := range []Source{Roles, ClusterRoles, RoleBindings} {
		r.Listed(from, map[BindingKey]Binding{{Namespace: "app", Name: "b"}: one})
		assert.False(t, r.watched())
	}
	assert.Empty(t, *changes, "not all watches are complete")
	r.Listed(ClusterRoleBindings, map[BindingKey]Binding{{Name: "b"}: one})
	assert.True(t, r.watched())
	require.Len(t, *changes, 1)
	assert.True(t, (*changes)[0].everyone)

	concerned := func(namespace string) bool {
		*changes = nil
		r.RoleChanged(role)
		return (*changes)[0].concerns(deployer, namespace)
	}
	assert.True(t, concerned("other"), "by the ClusterRoleBinding")
	r.Listed(ClusterRoleBindings, nil)
	assert.False(t, concerned("other"))
	assert.True(t, concerned("app"), "the RoleBinding is left")
	r.Listed(Roles, nil)
	assert.True(t, concerned("app"), "roles have no bindings")
	r.Listed(RoleBindings, nil)
	assert.False(t, concerned("app"))

	r.Interrupted(Roles)
	assert.False(t, r.watched())
	r.Listed(Roles, nil)
	assert.True(t, r.watched())
	r.SetBinding(BindingKey{Name: "b"}, &one)
	r.Clear()
	assert.False(t, r.watched())
	assert.False(t, concerned("app"))
}
