package cluster

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnErrorOfTheWatchDecidesWhatIsKnown(t *testing.T) {
	resource := schema.GroupResource{Resource: "clusterclaims"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no"))
	tests := map[string]struct {
		err              error
		items            int
		known, forbidden bool
		changes          int
	}{
		"a watch that ended normally keeps the values":    {items: 1, known: true},
		"an API server that is away keeps the values":     {err: errors.New("connection refused"), items: 1, known: true},
		"a credential that is refused keeps the values":   {err: apierrors.NewUnauthorized("expired"), items: 1, known: true},
		"a resource that is not served has no objects":    {err: apierrors.NewNotFound(resource, ""), known: true, changes: 1},
		"objects that the agent may not list are unknown": {err: forbidden, forbidden: true, changes: 2},
		"an overloaded API server keeps the values": {
			err:   apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "list", resource, "", "", 1, true),
			items: 1, known: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changes := 0
			c := newCollection("claims", claimOf, func() { changes++ })
			a := object(t, `{"metadata":{"name":"a"},"spec":{"value":"1"}}`)
			c.Replace(t.Context(), []*unstructured.Unstructured{a}, "1")
			changes = 0
			c.ended(t.Context(), tc.err)
			items, known := c.List()
			assert.Len(t, items, tc.items)
			assert.Equal(t, tc.known, known)
			assert.Equal(t, tc.forbidden, c.forbidden.Load())
			assert.Equal(t, tc.changes, changes)

			c.ended(t.Context(), tc.err)
			assert.Equal(t, tc.changes, changes, "the same end again changes nothing")
			c.Replace(t.Context(), []*unstructured.Unstructured{a}, "2")
			items, known = c.List()
			assert.Equal(t, []claim{{name: "a", value: "1"}}, items)
			assert.True(t, known)
			assert.False(t, c.forbidden.Load())
		})
	}
}

func TestACollectionReportsChangesOfItsValuesOnly(t *testing.T) {
	changes := 0
	c := newCollection("claims", claimOf, func() { changes++ })
	a := func(value, more string) *unstructured.Unstructured {
		return object(t, `{"metadata":{"name":"a"`+more+`},"spec":{"value":"`+value+`"}}`)
	}
	list := func(objects ...*unstructured.Unstructured) func() {
		return func() { c.Replace(t.Context(), objects, "1") }
	}
	update := func(o *unstructured.Unstructured) func() { return func() { c.Update(t.Context(), o) } }
	for _, step := range []struct {
		what    string
		do      func()
		reports bool
		want    []claim
	}{
		{"the first list", list(a("1", "")), true, []claim{{name: "a", value: "1"}}},
		{"the same list", list(a("1", "")), false, []claim{{name: "a", value: "1"}}},
		{"another version of the same", update(a("1", `,"resourceVersion":"9"`)), false, []claim{{name: "a", value: "1"}}},
		{"another value", update(a("2", "")), true, []claim{{name: "a", value: "2"}}},
		{"a value that cannot be reported", update(a("", "")), true, []claim{}},
		{"the same again", update(a("", "")), false, []claim{}},
		{"a good value again", update(a("3", "")), true, []claim{{name: "a", value: "3"}}},
		{"a deletion", func() { c.Delete(t.Context(), a("3", "")) }, true, []claim{}},
		{"a list with one that cannot be reported", list(a("", "")), false, []claim{}},
	} {
		before := changes
		step.do()
		assert.Equal(t, step.reports, changes > before, step.what)
		items, known := c.List()
		assert.Equal(t, step.want, items, step.what)
		assert.True(t, known, step.what)
	}
}
