package apiserver

import (
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Backup is the state of a Server at an instant.
type Backup struct {
	version uint64
	objects map[schema.GroupResource]map[key]*stored
	ending  map[string]bool
}

// Backup returns the present state.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{
		version: s.version, objects: map[schema.GroupResource]map[key]*stored{}, ending: maps.Clone(s.ending),
	}
	for name, t := range s.tables {
		b.objects[name] = maps.Clone(t.objects)
	}
	return b
}

// Restore puts an earlier state back, as a restore of etcd does: resource versions go back, too, all that was since is
// forgotten, and connections break. A watch from a version that is not reached any more shows nothing until it is.
func (s *Server) Restore(b *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.ending = b.version, maps.Clone(b.ending)
	s.alive, s.owned = map[types.UID]place{}, map[types.UID]map[place]bool{}
	s.loose, s.going, s.waiting = nil, nil, map[types.UID]bool{}
	for name, t := range s.tables {
		t.objects, t.log, t.compacted = map[key]*stored{}, nil, b.version
		for at, one := range b.objects[name] {
			t.objects[at] = one
			s.alive[one.meta().GetUID()] = place{t, at}
		}
	}
	for _, t := range s.sorted() {
		for at, one := range t.objects {
			for _, owner := range one.meta().GetOwnerReferences() {
				if s.owned[owner.UID] == nil {
					s.owned[owner.UID] = map[place]bool{}
				}
				s.owned[owner.UID][place{t, at}] = true
			}
		}
		for _, streams := range t.watches {
			for one := range streams {
				one.end(io.ErrUnexpectedEOF)
			}
		}
	}
}
