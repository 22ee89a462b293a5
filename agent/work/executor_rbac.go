package work

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
)

// roleKey names a role; a ClusterRole has no namespace.
type roleKey struct{ namespace, name string }

// String names the role for a person.
func (r roleKey) String() string {
	if r.namespace == "" {
		return "ClusterRole " + r.name
	}
	return "Role " + r.namespace + "/" + r.name
}

// bindingKey names a binding; a ClusterRoleBinding has no namespace.
type bindingKey struct{ namespace, name string }

// binding is what matters of a RoleBinding or ClusterRoleBinding.
type binding struct {
	role     roleKey
	subjects []string
}

// roleOf is the role that a binding in the namespace refers to.
func roleOf(ref rbacv1.RoleRef, namespace string) roleKey {
	if ref.Kind == "ClusterRole" {
		return roleKey{name: ref.Name}
	}
	return roleKey{namespace: namespace, name: ref.Name}
}

// bindingOf keeps of a binding its role and its subjects.
func bindingOf(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespace string) binding {
	b := binding{role: roleOf(ref, namespace)}
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			at := s.Namespace
			if at == "" {
				at = namespace
			}
			b.subjects = append(b.subjects, executor{namespace: at, name: s.Name}.String())
		case rbacv1.UserKind:
			b.subjects = append(b.subjects, s.Name)
		case rbacv1.GroupKind:
			b.subjects = append(b.subjects, groupMark+s.Name)
		}
	}
	slices.Sort(b.subjects)
	return b
}

// groupMark tells groups from users among the subjects of a binding.
const groupMark = "group "

// covers reports whether the binding gives anything to the executor, by its name or by one of its groups.
func (b binding) covers(who executor) bool {
	return slices.Contains(b.subjects, who.String()) ||
		slices.ContainsFunc(who.groups(), func(group string) bool { return slices.Contains(b.subjects, groupMark+group) })
}

// equal reports whether two bindings give the same to the same.
func (b binding) equal(o binding) bool {
	return b.role == o.role && slices.Equal(b.subjects, o.subjects)
}

// reach tells for whom and where a change may change an answer.
type reach struct {
	// everyone is set when nothing more is known.
	everyone bool
	// before and after are a binding that changed; one is zero when the binding came or went.
	before, after binding
	// namespace is where the binding holds; empty means everywhere.
	namespace string
	// role is a role that changed, bound are the bindings of it by where they hold.
	role  roleKey
	bound map[string][]binding
}

// concerns reports whether the rights of an executor in a namespace may have changed.
func (r reach) concerns(who executor, namespace string) bool {
	if r.everyone {
		return true
	}
	if r.namespace == "" || r.namespace == namespace {
		if r.before.covers(who) || r.after.covers(who) {
			return true
		}
	}
	for at, list := range r.bound {
		if at != "" && at != namespace {
			continue
		}
		if slices.ContainsFunc(list, func(b binding) bool { return b.covers(who) }) {
			return true
		}
	}
	return false
}

// touches reports whether the rights of an executor may have changed anywhere.
func (r reach) touches(who executor) bool {
	if r.everyone || r.before.covers(who) || r.after.covers(who) {
		return true
	}
	for _, list := range r.bound {
		if slices.ContainsFunc(list, func(b binding) bool { return b.covers(who) }) {
			return true
		}
	}
	return false
}

// bindings is what the watches of RBAC say: who is bound to what. It does no I/O; tell is called without the lock.
type bindings struct {
	mu     sync.Mutex
	known  map[bindingKey]binding
	synced map[rbacSource]bool
	tell   func(reach)
}

// rbacSource is one of the watches of RBAC.
type rbacSource string

const (
	fromRoleBindings        rbacSource = "rolebindings"
	fromClusterRoleBindings rbacSource = "clusterrolebindings"
	fromRoles               rbacSource = "roles"
	fromClusterRoles        rbacSource = "clusterroles"
	rbacSources                        = 4
)

// newBindings returns an empty picture of RBAC.
func newBindings(tell func(reach)) *bindings {
	return &bindings{known: map[bindingKey]binding{}, synced: map[rbacSource]bool{}, tell: tell}
}

// live reports whether every change of RBAC is heard.
func (b *bindings) live() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.synced) == rbacSources
}

// changed takes in a binding as it is now; nil when it is gone. That its metadata changed concerns nobody.
func (b *bindings) changed(key bindingKey, now *binding) {
	b.mu.Lock()
	before, after := b.known[key], binding{}
	if now == nil {
		delete(b.known, key)
	} else {
		after = *now
		b.known[key] = after
	}
	b.mu.Unlock()
	if !before.equal(after) {
		b.tell(reach{before: before, after: after, namespace: key.namespace})
	}
}

// roleChanged tells who is bound to a role that came, went or changed.
func (b *bindings) roleChanged(role roleKey) {
	r := reach{role: role, bound: map[string][]binding{}}
	b.mu.Lock()
	for key, known := range b.known {
		if known.role == role {
			r.bound[key.namespace] = append(r.bound[key.namespace], known)
		}
	}
	b.mu.Unlock()
	b.tell(r)
}

// listed takes in the complete state of one watch. As long as it was not watched anything may have changed, so once all
// are complete everyone is told.
func (b *bindings) listed(from rbacSource, now map[bindingKey]binding) {
	b.mu.Lock()
	if from == fromRoleBindings || from == fromClusterRoleBindings {
		for key := range b.known {
			if (key.namespace == "") == (from == fromClusterRoleBindings) {
				delete(b.known, key)
			}
		}
		for key, one := range now {
			b.known[key] = one
		}
	}
	b.synced[from] = true
	complete := len(b.synced) == rbacSources
	b.mu.Unlock()
	if complete {
		b.tell(reach{everyone: true})
	}
}

// lost says that a watch is interrupted.
func (b *bindings) lost(from rbacSource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.synced, from)
}

// clear forgets everything, when nobody asks any more.
func (b *bindings) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.synced = map[bindingKey]binding{}, map[rbacSource]bool{}
}
