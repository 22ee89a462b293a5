package apiserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// index keeps in mind which objects exist and who owns them.
func (s *Server) index(t *table, before, after *stored) {
	if before != nil {
		at := place{t, before.key}
		for _, owner := range before.meta().GetOwnerReferences() {
			if s.waiting[owner.UID] {
				delete(s.waiting, owner.UID)
				s.going = append(s.going, owner.UID)
			}
			delete(s.owned[owner.UID], at)
			if len(s.owned[owner.UID]) == 0 {
				delete(s.owned, owner.UID)
			}
		}
		if after == nil {
			uid := before.meta().GetUID()
			delete(s.alive, uid)
			s.loose = append(s.loose, uid)
		}
	}
	if after == nil {
		return
	}
	m := after.meta()
	s.alive[m.GetUID()] = place{t, after.key}
	for _, owner := range m.GetOwnerReferences() {
		if s.owned[owner.UID] == nil {
			s.owned[owner.UID] = map[place]bool{}
		}
		s.owned[owner.UID][place{t, after.key}] = true
		if _, lives := s.alive[owner.UID]; !lives {
			s.loose = append(s.loose, owner.UID)
		}
	}
	if m.GetDeletionTimestamp() != nil {
		s.going = append(s.going, m.GetUID())
	}
}

// settle does what controllers do after a write, until nothing is left to do: the garbage collector and the controller
// of namespaces.
func (s *Server) settle() {
	for len(s.loose)+len(s.going) > 0 || s.emptyNamespaces() {
		loose, going := s.loose, s.going
		s.loose, s.going = nil, nil
		for _, uid := range loose {
			for _, at := range s.dependents(uid) {
				s.release(at)
			}
		}
		for _, uid := range going {
			s.finalize(uid)
		}
	}
}

// dependents returns what an object owns, in order.
func (s *Server) dependents(uid types.UID) []place {
	all := make([]place, 0, len(s.owned[uid]))
	for at := range s.owned[uid] {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b place) int {
		if a.table != b.table {
			return slices.Compare([]string{a.table.resource.String()}, []string{b.table.resource.String()})
		}
		return a.key.compare(b.key)
	})
	return all
}

// release deletes an object none of whose owners stays, or takes those that do not stay from it.
func (s *Server) release(at place) {
	one := at.table.objects[at.key]
	if one == nil || one.meta().GetDeletionTimestamp() != nil {
		return
	}
	owners := one.meta().GetOwnerReferences()
	left := slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool { return !s.stays(o.UID) })
	switch {
	case len(left) == len(owners):
	case len(left) > 0:
		s.own(at.table, one, left)
	default:
		policy := metav1.DeletePropagationBackground
		goesLast := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool {
			_, lives := s.alive[o.UID]
			return lives
		})
		switch finalizers := one.meta().GetFinalizers(); {
		case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
			policy = metav1.DeletePropagationOrphan
		case goesLast && len(s.owned[one.meta().GetUID()]) > 0:
			policy = metav1.DeletePropagationForeground
		}
		s.end(at.table, one, one.copied(), &metav1.DeleteOptions{PropagationPolicy: &policy})
	}
}

// stays reports whether an owner exists and does not wait for what it owns to go.
func (s *Server) stays(uid types.UID) bool {
	at, lives := s.alive[uid]
	if !lives {
		return false
	}
	m := at.table.objects[at.key].meta()
	return m.GetDeletionTimestamp() == nil || !slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// own sets the owners of an object.
func (s *Server) own(t *table, one *stored, owners []metav1.OwnerReference) {
	after := one.copied()
	if after.meta().SetOwnerReferences(owners); len(owners) == 0 {
		after.setMeta("ownerReferences", nil)
	}
	s.write(t, one, after)
}

// finalize does what the finalizers of the garbage collector ask for.
func (s *Server) finalize(uid types.UID) {
	at, lives := s.alive[uid]
	if !lives {
		return
	}
	one := at.table.objects[at.key]
	finalizers := one.meta().GetFinalizers()
	done := ""
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		for _, dependent := range s.dependents(uid) {
			child := dependent.table.objects[dependent.key]
			s.own(dependent.table, child, slices.DeleteFunc(child.meta().GetOwnerReferences(),
				func(o metav1.OwnerReference) bool { return o.UID == uid }))
		}
		done = metav1.FinalizerOrphanDependents
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		if s.waiting[uid] = s.endDependents(uid); s.waiting[uid] {
			return
		}
		delete(s.waiting, uid)
		done = metav1.FinalizerDeleteDependents
	default:
		return
	}
	after := one.copied()
	left := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool { return name == done })
	if after.meta().SetFinalizers(left); len(left) == 0 {
		s.remove(at.table, one)
		return
	}
	s.write(at.table, one, after)
}

// endDependents deletes what an object owns, and reports whether something is left that has to go before it.
func (s *Server) endDependents(uid types.UID) (left bool) {
	for _, at := range s.dependents(uid) {
		s.release(at)
		one := at.table.objects[at.key]
		left = left || one != nil && slices.ContainsFunc(one.meta().GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return o.UID == uid && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
		})
	}
	return left
}

// emptyNamespaces deletes the content of namespaces that are being deleted, and those without content. It reports
// whether it did something.
func (s *Server) emptyNamespaces() (changed bool) {
	namespaces := s.tables[schema.GroupResource{Resource: "namespaces"}]
	for name := range s.ending {
		left := false
		for _, t := range s.sorted() {
			if !t.resource.Namespaced {
				continue
			}
			for _, one := range t.in(name) {
				if one.meta().GetDeletionTimestamp() == nil {
					background := metav1.DeletePropagationBackground
					s.end(t, one, one.copied(), &metav1.DeleteOptions{PropagationPolicy: &background})
					changed = true
				}
				left = left || t.objects[one.key] != nil
			}
		}
		if one := namespaces.objects[key{name: name}]; !left && one != nil && len(one.meta().GetFinalizers()) == 0 {
			s.remove(namespaces, one)
			delete(s.ending, name)
			changed = true
		}
	}
	return changed
}

// in returns the objects of a namespace, in order.
func (t *table) in(namespace string) []*stored {
	var all []*stored
	for at, one := range t.objects {
		if at.namespace == namespace {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return a.key.compare(b.key) })
	return all
}

// sorted returns the tables in order.
func (s *Server) sorted() []*table {
	all := make([]*table, 0, len(s.tables))
	for _, t := range s.tables {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *table) int {
		return slices.Compare([]string{a.resource.String()}, []string{b.resource.String()})
	})
	return all
}
