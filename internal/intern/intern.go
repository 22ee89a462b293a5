// Package intern lets the objects of a cache share equal strings, maps and lists. A hub holds tens of thousands of
// objects that differ in little: the same labels, reasons, messages, hashes and references to configurations, each of
// which is decoded into memory of its own. What is shared must not be changed.
package intern

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// variants is the number of different lists under one key, and listGeneration the number of keys after which the
	// oldest ones are forgotten.
	variants, listGeneration = 4, 4096
)

// Table returns one copy of equal strings, maps and lists. It keeps those of the last two generations. The zero value
// is ready, and several goroutines may use it.
type Table struct {
	mu         sync.Mutex
	young, old map[string]string
	// seed is that of the hashes by which maps are found.
	seed               maphash.Seed
	youngMaps, oldMaps map[uint64]map[string]string
	// youngLists and oldLists have the last few lists under each key, the latest one first.
	youngLists, oldLists map[string][]any
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

// List returns a list that is equal to the given one: one that was given before under the same key, or the given one
// after prepare shared what is in it; nil prepares nothing. A key says of which objects the lists are likely to be
// equal, such as "owners of a", and is about one type of list. Equal lists are compared much faster than their strings
// are found one by one.
func List[E any](t *Table, key string, list []E, prepare func([]E)) []E {
	if len(list) == 0 {
		return list
	}
	for _, known := range t.lists(key) {
		if known, sameType := known.([]E); sameType && reflect.DeepEqual(known, list) {
			return known
		}
	}
	list = Clip(list)
	if prepare != nil {
		prepare(list)
	}
	t.addList(key, list)
	return list
}

// lists returns the lists under a key.
func (t *Table) lists(key string) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.youngLists[key]
	if !found {
		if known, found = t.oldLists[key]; found {
			t.putLists(key, known)
		}
	}
	return known
}

// addList adds a list under a key, in the place of the oldest one if there are too many.
func (t *Table) addList(key string, list any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.youngLists[key]
	t.putLists(key, append([]any{list}, known[:min(len(known), variants-1)]...)) // Others may read what is there.
}

func (t *Table) putLists(key string, lists []any) {
	if _, found := t.youngLists[key]; !found && (t.youngLists == nil || len(t.youngLists) >= listGeneration) {
		t.youngLists, t.oldLists = make(map[string][]any), t.youngLists
	}
	t.youngLists[key] = lists
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
	o.SetAnnotations(t.Map(o.GetAnnotations()))
	o.SetOwnerReferences(List(t, "owners of "+o.GetName(), o.GetOwnerReferences(), func(owners []metav1.OwnerReference) {
		for i := range owners {
			t.Strings(&owners[i].APIVersion, &owners[i].Kind, &owners[i].Name)
		}
	}))
	o.SetFinalizers(List(t, "finalizers", o.GetFinalizers(), nil))
}

// Conditions shares the strings of conditions in place.
func (t *Table) Conditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		t.Strings(&c.Type, &c.Reason, &c.Message)
		c.Status = metav1.ConditionStatus(t.String(string(c.Status)))
	}
}
