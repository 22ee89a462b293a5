package executor

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
)

// roleKey names a role; a ClusterRole has no namespace.
type roleKey struct{ Namespace, Name string }

// String names the role for a person.
func (r roleKey) String() string {
	if r.Namespace == "" {
		return "ClusterRole " + r.Name
	}
	return "Role " + r.Namespace + "/" + r.Name
}

// roleOf returns the role that a binding in the namespace refers to.
func roleOf(ref rbacv1.RoleRef, namespace string) roleKey {
	if ref.Kind == "ClusterRole" {
		return roleKey{Name: ref.Name}
	}
	return roleKey{Namespace: namespace, Name: ref.Name}
}

// bindingKey names a binding; a ClusterRoleBinding has no namespace.
type bindingKey struct{ Namespace, Name string }

// binding is the part of a RoleBinding or ClusterRoleBinding that grants permissions.
type binding struct {
	role     roleKey
	subjects []string
}

// bindingOf returns the binding of subjects to a role in a namespace; a ClusterRoleBinding has none.
func bindingOf(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespace string) binding {
	b := binding{role: roleOf(ref, namespace)}
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			at := s.Namespace
			if at == "" {
				at = namespace
			}
			b.subjects = append(b.subjects, ServiceAccount{Namespace: at, Name: s.Name}.String())
		case rbacv1.UserKind:
			b.subjects = append(b.subjects, s.Name)
		case rbacv1.GroupKind:
			b.subjects = append(b.subjects, groupPrefix+s.Name)
		}
	}
	slices.Sort(b.subjects)
	return b
}

// groupPrefix distinguishes groups from users among the subjects of a binding.
const groupPrefix = "group "

// covers reports whether the executor or one of its groups is a subject of the binding.
func (b binding) covers(who ServiceAccount) bool {
	return slices.Contains(b.subjects, who.String()) ||
		slices.ContainsFunc(who.groups(), func(group string) bool { return slices.Contains(b.subjects, groupPrefix+group) })
}

// equal reports whether two bindings grant the same to the same subjects.
func (b binding) equal(o binding) bool {
	return b.role == o.role && slices.Equal(b.subjects, o.subjects)
}

// scopedBinding is a binding and the namespace in which it counts; an empty namespace means the whole cluster.
type scopedBinding struct {
	binding
	namespace string
}

// rbacChange is a change of RBAC: the bindings whose effect may have changed.
type rbacChange struct {
	// everyone means that any binding may have changed.
	everyone bool
	// role is the role that changed, if the change is one of a role.
	role     roleKey
	bindings []scopedBinding
}

// concerns reports whether the permissions of an executor in a namespace may have changed.
func (c rbacChange) concerns(who ServiceAccount, namespace string) bool {
	return c.everyone || slices.ContainsFunc(c.bindings, func(b scopedBinding) bool {
		return (b.namespace == "" || b.namespace == namespace) && b.covers(who)
	})
}

// touches reports whether the permissions of an executor may have changed in any namespace.
func (c rbacChange) touches(who ServiceAccount) bool {
	return c.everyone || slices.ContainsFunc(c.bindings, func(b scopedBinding) bool { return b.covers(who) })
}

// rbacSource is one of the watches of RBAC, named by its resource.
type rbacSource string

// The watches that RBAC needs.
const (
	roleBindings        rbacSource = "rolebindings"
	clusterRoleBindings rbacSource = "clusterrolebindings"
	roles               rbacSource = "roles"
	clusterRoles        rbacSource = "clusterroles"
	sources                        = 4
)

// rbacState holds the subjects and roles of all bindings, as the watches saw them last. It does no I/O.
type rbacState struct {
	mu       sync.Mutex
	bindings map[bindingKey]binding
	synced   map[rbacSource]bool
	// changed is called for each change, without the lock.
	changed func(rbacChange)
}

// newRBACState returns a state that knows no binding.
func newRBACState(changed func(rbacChange)) *rbacState {
	return &rbacState{bindings: map[bindingKey]binding{}, synced: map[rbacSource]bool{}, changed: changed}
}

// watched reports whether every change of RBAC is seen.
func (r *rbacState) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.synced) == sources
}

// setBinding records a binding; nil means that it was deleted. A change of its metadata only is ignored.
func (r *rbacState) setBinding(key bindingKey, now *binding) {
	r.mu.Lock()
	before, after := r.bindings[key], binding{}
	if now == nil {
		delete(r.bindings, key)
	} else {
		after = *now
		r.bindings[key] = after
	}
	r.mu.Unlock()
	if !before.equal(after) {
		r.changed(rbacChange{bindings: []scopedBinding{{before, key.Namespace}, {after, key.Namespace}}})
	}
}

// roleChanged records that a role was created, changed or deleted.
func (r *rbacState) roleChanged(role roleKey) {
	change := rbacChange{role: role}
	r.mu.Lock()
	for key, b := range r.bindings {
		if b.role == role {
			change.bindings = append(change.bindings, scopedBinding{b, key.Namespace})
		}
	}
	r.mu.Unlock()
	r.changed(change)
}

// listed records the complete state of one watch. While a watch was interrupted anything may have changed, so that all
// decisions are dropped once all four are complete.
func (r *rbacState) listed(from rbacSource, now map[bindingKey]binding) {
	r.mu.Lock()
	if from == roleBindings || from == clusterRoleBindings {
		for key := range r.bindings {
			if (key.Namespace == "") == (from == clusterRoleBindings) {
				delete(r.bindings, key)
			}
		}
		for key, b := range now {
			r.bindings[key] = b
		}
	}
	r.synced[from] = true
	complete := len(r.synced) == sources
	r.mu.Unlock()
	if complete {
		r.changed(rbacChange{everyone: true})
	}
}

// interrupted records that a watch ended.
func (r *rbacState) interrupted(from rbacSource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.synced, from)
}

// clear forgets all bindings when no work has an executor any more.
func (r *rbacState) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bindings, r.synced = map[bindingKey]binding{}, map[rbacSource]bool{}
}
