package intern

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// same reports whether two strings are in the same memory.
func same(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

func TestEqualStringsAreOne(t *testing.T) {
	var table Table
	one, two := strings.Clone("message"), strings.Clone("message")
	assert.False(t, same(one, two))
	assert.True(t, same(table.String(one), table.String(two)))
	assert.Empty(t, table.String(""))
	long := strings.Repeat("x", maxLength+1)
	assert.Equal(t, long, table.String(long))
	assert.NotContains(t, table.young, long)
	assert.Contains(t, table.young, "message")
}

func TestTheTableIsBounded(t *testing.T) {
	var table Table
	kept := table.String(strings.Clone("kept"))
	for n := range 10 * generation {
		table.String(fmt.Sprint("s", n))
		if n%1000 == 0 {
			assert.True(t, same(kept, table.String(strings.Clone("kept"))), "what is in use is not forgotten")
		}
	}
	assert.LessOrEqual(t, len(table.young)+len(table.old), 2*generation)
	assert.NotContains(t, table.young, "s0")
	assert.NotContains(t, table.old, "s0")
}

func TestObjectsKeepWhatTheyHave(t *testing.T) {
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b", "c": ""},
			Annotations: map[string]string{"d": "e"}, Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "o", UID: "v"}},
		}}
	}
	var table Table
	got, again := object(), object()
	table.Meta(got)
	table.Meta(again)
	assert.Equal(t, object(), got)
	assert.Equal(t, object(), again)
	conditions := func() []metav1.Condition {
		return []metav1.Condition{{Type: "T", Status: "True", Reason: "R", Message: "M", ObservedGeneration: 3}}
	}
	have := conditions()
	table.Conditions(have)
	assert.Equal(t, conditions(), have)
}

// first returns the address of the first element.
func first[E any](list []E) *E { return &list[0] }

func TestEqualListsAreOne(t *testing.T) {
	var table Table
	prepared := 0
	list := func(key string, numbers ...int) []int {
		return List(&table, key, numbers, func([]int) { prepared++ })
	}
	one := list("a", 1, 2)
	assert.Same(t, first(one), first(list("a", 1, 2)))
	assert.Equal(t, 1, prepared, "what is found is not prepared, as others read it")
	assert.NotSame(t, first(one), first(list("b", 1, 2)), "lists under another key are not searched")
	assert.Equal(t, []int{1, 2, 3}, list("a", 1, 2, 3))
	assert.Same(t, first(one), first(list("a", 1, 2)), "several lists under one key")
	assert.Same(t, first(one), first(List(&table, "a", one, nil)), "one that is shared already")
	assert.Equal(t, []string{"x"}, List(&table, "a", []string{"x"}, nil), "another type under the same key")
	assert.Equal(t, []string{""}, List(&table, "c", []string{""}, nil))
	assert.Nil(t, List[int](&table, "a", nil, nil))
	assert.NotNil(t, List(&table, "a", []int{}, nil))
	room := append(make([]int, 0, 8), 5)
	assert.Equal(t, 1, cap(List(&table, "room", room, nil)))
}

func TestListsAreBounded(t *testing.T) {
	var table Table
	kept := List(&table, "kept", []int{1}, nil)
	for n := range 10 * listGeneration {
		List(&table, "many", []int{n}, nil)
		List(&table, fmt.Sprint("key ", n), []int{n}, nil)
		if n%1000 == 0 {
			assert.Same(t, first(kept), first(List(&table, "kept", []int{1}, nil)), "what is in use is not forgotten")
		}
	}
	assert.LessOrEqual(t, len(table.youngLists)+len(table.oldLists), 2*listGeneration)
	assert.Len(t, table.youngLists["many"], variants)
	assert.NotContains(t, table.youngLists, "key 0")
	assert.NotContains(t, table.oldLists, "key 0")
}

func TestSeveralGoroutinesShare(t *testing.T) {
	var table Table
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for n := range 1000 {
				assert.Equal(t, fmt.Sprint(n%7), table.String(fmt.Sprint(n%7)))
				key := fmt.Sprint(n % 3)
				assert.Equal(t, []int{n % 5}, List(&table, key, []int{n % 5}, nil))
			}
		})
	}
	group.Wait()
}
