// Package intern lets the objects of a cache share equal strings and maps. A hub holds tens of thousands of objects
// that differ in little: the same labels, reasons, messages and hashes, each of which is decoded into memory of its
// own.
package intern

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxLength is the length of the longest string that is shared, in bytes. Longer ones are seldom equal.
	maxLength = 512
	// generation is the number of strings after which the oldest ones are forgotten. Those in use stay where they are, and
	// new ones are no longer shared with them.
	generation = 16384
	// smallMap is the number of entries of the largest map that is shared, and mapGeneration the number of such maps after
	// which the oldest ones are forgotten.
	smallMap, mapGeneration = 4, 1024
)

// Table returns one copy of equal strings and maps. It keeps those of the last two generations. The zero value is
// ready, and several goroutines may use it.
type Table struct {
	mu         sync.Mutex
	young, old map[string]string
	// seed is that of the hashes by which maps are found.
	seed               maphash.Seed
	youngMaps, oldMaps map[uint64]map[string]string
}

// String returns a string that is equal to the given one.
func (t *Table) String(s string) string {
	if s == "" || len(s) > maxLength {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.young[s]; found {
		return known
	}
	if known, found := t.old[s]; found {
		s = known
	}
	if t.young == nil || len(t.young) >= generation {
		t.young, t.old = make(map[string]string), t.young
	}
	t.young[s] = s
	return s
}

// Strings shares the given strings in place.
func (t *Table) Strings(all ...*string) {
	for _, s := range all {
		*s = t.String(*s)
	}
}

// Map returns a copy of a map whose keys and values are shared, nil for an empty map. A small map is shared as a whole,
// so that it must not be changed: a map of one entry takes as much memory as one of eight, more than the rest of the
// metadata.
func (t *Table) Map(m map[string]string) map[string]string {
	if len(m) == 0 || len(m) > smallMap {
		return t.copyOf(m)
	}
	t.mu.Lock()
	sum := t.sum(m)
	known, found := t.youngMaps[sum]
	if !found {
		known = t.oldMaps[sum]
	}
	t.mu.Unlock()
	if !maps.Equal(known, m) {
		known = t.copyOf(m)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.youngMaps == nil || len(t.youngMaps) >= mapGeneration {
		t.youngMaps, t.oldMaps = make(map[uint64]map[string]string), t.youngMaps
	}
	t.youngMaps[sum] = known
	return known
}

// copyOf returns a copy of a map whose keys and values are shared; nil for an empty map.
func (t *Table) copyOf(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	all := make(map[string]string, len(m))
	for key, value := range m {
		all[t.String(key)] = t.String(value)
	}
	return all
}

// sum returns a hash of a map that does not depend on its order.
func (t *Table) sum(m map[string]string) uint64 {
	if t.youngMaps == nil {
		t.seed = maphash.MakeSeed()
	}
	var sum uint64
	for key, value := range m {
		sum += maphash.Comparable(t.seed, [2]string{key, value})
	}
	return sum
}

// Clip returns a list without room for more elements: what decodes a list leaves room for twice as many.
func Clip[S ~[]E, E any](list S) S {
	if cap(list) == len(list) {
		return list
	}
	return slices.Clone(list)
}

// Meta shares the labels and the strings of metadata, except those that no two objects have in common.
func (t *Table) Meta(o metav1.Object) {
	o.SetName(t.String(o.GetName()))
	o.SetNamespace(t.String(o.GetNamespace()))
	o.SetLabels(t.Map(o.GetLabels()))
	o.SetAnnotations(t.copyOf(o.GetAnnotations())) // They are seldom those of another object.
	owners := Clip(o.GetOwnerReferences())
	for i := range owners {
		t.Strings(&owners[i].APIVersion, &owners[i].Kind, &owners[i].Name)
		owners[i].UID = types.UID(t.String(string(owners[i].UID)))
	}
	o.SetOwnerReferences(owners)
	finalizers := Clip(o.GetFinalizers())
	for i := range finalizers {
		t.Strings(&finalizers[i])
	}
}

// Conditions shares the strings of conditions in place.
func (t *Table) Conditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		t.Strings(&c.Type, &c.Reason, &c.Message)
		c.Status = metav1.ConditionStatus(t.String(string(c.Status)))
	}
}
