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

func TestSeveralGoroutinesShare(t *testing.T) {
	var table Table
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for n := range 1000 {
				assert.Equal(t, fmt.Sprint(n%7), table.String(fmt.Sprint(n%7)))
			}
		})
	}
	group.Wait()
}
