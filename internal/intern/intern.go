// Package intern lets the objects of a cache share equal strings. A hub holds tens of thousands of objects that differ
// in little: the same labels, reasons, messages and hashes, each of which is decoded into memory of its own.
package intern

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxLength is the length of the longest string that is shared, in bytes. Longer ones are seldom equal.
	maxLength = 512
	// generation is the number of strings after which the oldest ones are forgotten. Those in use stay where they are, and
	// new ones are no longer shared with them.
	generation = 16384
)

// Table returns one copy of equal strings. It keeps those of the last two generations. The zero value is ready, and
// several goroutines may use it.
type Table struct {
	mu         sync.Mutex
	young, old map[string]string
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

// Map shares the keys and values of a map. It returns nil for an empty map.
func (t *Table) Map(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	shared := make(map[string]string, len(m))
	for key, value := range m {
		shared[t.String(key)] = t.String(value)
	}
	return shared
}

// Meta shares the strings of metadata, except those that no two objects have in common.
func (t *Table) Meta(o metav1.Object) {
	o.SetName(t.String(o.GetName()))
	o.SetNamespace(t.String(o.GetNamespace()))
	o.SetLabels(t.Map(o.GetLabels()))
	o.SetAnnotations(t.Map(o.GetAnnotations()))
	owners := o.GetOwnerReferences()
	for i := range owners {
		t.Strings(&owners[i].APIVersion, &owners[i].Kind, &owners[i].Name)
	}
	o.SetOwnerReferences(owners)
	finalizers := o.GetFinalizers()
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
