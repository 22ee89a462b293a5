package watch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAStoreKeepsOneValuePerObjectAndReportsChanges(t *testing.T) {
	var reported [][]types.NamespacedName
	s := &Store[*corev1.ConfigMap, string]{
		Keep: func(_ context.Context, c *corev1.ConfigMap) (string, bool) {
			value := c.Data["k"]
			return c.Name + "=" + value, value != ""
		},
		Changed: func(keys []types.NamespacedName) { reported = append(reported, keys) },
	}
	of := func(namespace, name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"k": value},
		}
	}
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	a, b := key("a"), key("b")
	values, synced := s.List()
	assert.Empty(t, values)
	assert.False(t, synced, "before the first list nothing is known")
	for _, step := range []struct {
		what    string
		do      func()
		reports []types.NamespacedName
		silent  bool
		want    []string
		unknown bool
	}{
		{what: "an event before the first list", do: func() { s.Update(t.Context(), of("ns", "a", "0")) },
			reports: []types.NamespacedName{a}, want: []string{"a=0"}, unknown: true},
		{what: "the first list", do: func() { s.Replace(t.Context(), []*corev1.ConfigMap{of("ns", "a", "1")}, "1") },
			reports: []types.NamespacedName{a}, want: []string{"a=1"}},
		{what: "the same list", do: func() { s.Replace(t.Context(), []*corev1.ConfigMap{of("ns", "a", "1")}, "2") },
			silent: true, want: []string{"a=1"}},
		{what: "the same object", do: func() { s.Update(t.Context(), of("ns", "a", "1")) }, silent: true, want: []string{"a=1"}},
		{what: "another value", do: func() { s.Update(t.Context(), of("ns", "a", "2")) },
			reports: []types.NamespacedName{a}, want: []string{"a=2"}},
		{what: "a second object", do: func() { s.Update(t.Context(), of("ns", "b", "1")) },
			reports: []types.NamespacedName{b}, want: []string{"a=2", "b=1"}},
		{what: "an object of an earlier namespace", do: func() { s.Update(t.Context(), of("m", "c", "1")) },
			reports: []types.NamespacedName{{Namespace: "m", Name: "c"}}, want: []string{"c=1", "a=2", "b=1"}},
		{what: "an object that is left out now", do: func() { s.Update(t.Context(), of("ns", "a", "")) },
			reports: []types.NamespacedName{a}, want: []string{"c=1", "b=1"}},
		{what: "the same again", do: func() { s.Update(t.Context(), of("ns", "a", "")) }, silent: true,
			want: []string{"c=1", "b=1"}},
		{what: "a list without one of them", do: func() { s.Replace(t.Context(), []*corev1.ConfigMap{of("m", "c", "1")}, "3") },
			reports: []types.NamespacedName{b}, want: []string{"c=1"}},
		{what: "a deletion", do: func() { s.Delete(t.Context(), of("m", "c", "1")) },
			reports: []types.NamespacedName{{Namespace: "m", Name: "c"}}, want: []string{}},
		{what: "the deletion of an unknown object", do: func() { s.Delete(t.Context(), of("m", "c", "1")) }, silent: true,
			want: []string{}},
		{what: "a list with one that is left out", do: func() { s.Replace(t.Context(), []*corev1.ConfigMap{of("ns", "a", "")}, "4") },
			silent: true, want: []string{}},
		{what: "no answer any more", do: func() { s.Clear(false) }, reports: nil, want: []string{}, unknown: true},
		{what: "no answer still", do: func() { s.Clear(false) }, silent: true, want: []string{}, unknown: true},
		{what: "no objects for sure", do: func() { s.Clear(true) }, reports: nil, want: []string{}},
	} {
		reported = nil
		step.do()
		values, synced := s.List()
		assert.Equal(t, step.want, values, step.what)
		assert.Equal(t, !step.unknown, synced, step.what)
		if step.silent {
			assert.Empty(t, reported, step.what)
		} else {
			assert.Equal(t, [][]types.NamespacedName{step.reports}, reported, step.what)
		}
	}
	s.Update(t.Context(), of("ns", "b", "9"))
	value, ok := s.Get(b)
	assert.True(t, ok)
	assert.Equal(t, "b=9", value)
	_, ok = s.Get(a)
	assert.False(t, ok)
}
