package apiserver

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// change is one write of an object. before is nil for a new one, after for one that went.
type change struct {
	version       uint64
	before, after *stored
}

// last is the object as the event of a deletion shows it, in the version of the deletion.
func (c *change) last() *stored {
	if c.after != nil {
		return c.after
	}
	return store(c.before.copied(), c.version)
}

// table has the objects of one resource and their latest changes.
type table struct {
	resource *Resource
	objects  map[key]*stored
	// log are the changes after the version compacted, oldest first.
	log       []*change
	compacted uint64
	// watches are the open ones, by their namespace; empty is all.
	watches map[string]map[*stream]bool
}

func newTable(r *Resource) *table {
	return &table{resource: r, objects: map[key]*stored{}, watches: map[string]map[*stream]bool{}}
}

// record takes up a change and shows it to the watches.
func (t *table) record(c *change, keep int) {
	var name key
	if c.after != nil {
		name = c.after.key
		t.objects[name] = c.after
	} else {
		name = c.before.key
		delete(t.objects, name)
	}
	t.log = append(t.log, c)
	if len(t.log) > 2*keep { // seldom, so that it costs little
		t.compact(t.log[len(t.log)-keep-1].version)
	}
	for one := range t.watches[name.namespace] {
		one.show(c)
	}
	if name.namespace != "" {
		for one := range t.watches[""] {
			one.show(c)
		}
	}
}

// compact forgets the changes up to a version.
func (t *table) compact(version uint64) {
	after, _ := slices.BinarySearchFunc(t.log, version+1, func(c *change, v uint64) int { return int(c.version) - int(v) })
	t.log, t.compacted = slices.Clone(t.log[after:]), max(t.compacted, version)
}

// since returns the changes after a version.
func (t *table) since(version uint64) ([]*change, error) {
	if version < t.compacted {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	after, _ := slices.BinarySearchFunc(t.log, version+1, func(c *change, v uint64) int { return int(c.version) - int(v) })
	return t.log[after:], nil
}

// at returns the objects of a namespace, or of all, as they were at a version, in order.
func (t *table) at(version uint64, namespace string, selects func(*stored) bool) ([]*stored, error) {
	later, err := t.since(version)
	if err != nil {
		return nil, err
	}
	objects := t.objects
	if len(later) > 0 {
		objects = maps.Clone(objects)
		for _, c := range slices.Backward(later) {
			if c.before != nil {
				objects[c.before.key] = c.before
			} else {
				delete(objects, c.after.key)
			}
		}
	}
	var all []*stored
	for _, o := range objects {
		if (namespace == "" || o.key.namespace == namespace) && selects(o) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return a.key.compare(b.key) })
	return all, nil
}

// selection holds what a list or a watch asks for.
type selection struct {
	namespace, name string
	labels          labels.Selector
	// matches looks at the other fields; nil selects all.
	matches func(object) bool
}

// selects reports whether an object is asked for.
func (s *selection) selects(o *stored) bool {
	return (s.name == "" || o.key.name == s.name) && (s.namespace == "" || o.key.namespace == s.namespace) &&
		s.labels.Matches(o.labels) && (s.matches == nil || s.matches(o.object))
}
