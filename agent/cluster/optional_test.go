package cluster

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestADefinitionTellsWhatItServes(t *testing.T) {
	const established = `"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}`
	both := []string{"v1alpha1", "v1beta1"}
	tests := map[string]struct{ definition, want string }{
		"the preferred version": {
			`{"spec":{"versions":[{"name":"v1beta1","served":true},{"name":"v1alpha1","served":true}]},` + established + `}`,
			"v1alpha1",
		},
		"the other one where the preferred is not served": {
			`{"spec":{"versions":[{"name":"v1alpha1","served":false},{"name":"v1beta1","served":true}]},` + established + `}`,
			"v1beta1",
		},
		"none of a version that only looks alike": {
			`{"spec":{"versions":[{"name":"v1alpha11","served":true}]},` + established + `}`, "",
		},
		"none before it is established": {
			`{"spec":{"versions":[{"name":"v1alpha1","served":true}]},` +
				`"status":{"conditions":[{"type":"Established","status":"False"}]}}`, "",
		},
		"none without a status":         {`{"spec":{"versions":[{"name":"v1alpha1","served":true}]}}`, ""},
		"none of what is no definition": {`{"spec":7,"status":[]}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := definitionOf(object(t, tc.definition))
			require.NoError(t, err)
			assert.Equal(t, tc.want, d.serves(both))
		})
	}
}

func TestTheVersionToWatchFollowsTheDefinition(t *testing.T) {
	served := definition(",v1alpha1,")
	tests := map[string]struct {
		items          map[string]definition
		known, refused bool
		want           string
		wantKnown      bool
	}{
		"nothing is known before the first answer": {},
		"without a definition nothing is watched":  {known: true, wantKnown: true},
		"a definition that serves is followed": {
			items: map[string]definition{"d": served}, known: true, want: "v1alpha1", wantKnown: true,
		},
		"one that does not serve is not":                          {items: map[string]definition{"d": ""}, known: true, wantKnown: true},
		"without the right to look, the kind itself is asked for": {refused: true, want: "v1alpha1", wantKnown: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newOptional(clusterClaims(), func() {}, "v1alpha1")
			k.definition.set(tc.items, tc.known, tc.refused)
			version, known := k.version()
			assert.Equal(t, tc.want, version)
			assert.Equal(t, tc.wantKnown, known)
		})
	}
}

func TestWatchedKnowsWhatTheAnswersSay(t *testing.T) {
	resource := schema.GroupResource{Resource: "clusterclaims"}
	tests := map[string]struct {
		err     error
		items   int
		known   bool
		longest any
	}{
		"a watch that ended counts on": {nil, 1, true, lastPause},
		"a server that is away takes nothing back": {
			errors.New("connection refused"), 1, true, lastPause,
		},
		"an overloaded server takes nothing back": {
			apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "list", resource, "", "", 1, true), 1, true, lastPause,
		},
		"a credential that is refused takes nothing back": {apierrors.NewUnauthorized("expired"), 1, true, lastPause},
		"what is not served is empty":                     {apierrors.NewNotFound(resource, ""), 0, true, refusedPause},
		"what may not be seen is unknown": {
			apierrors.NewForbidden(resource, "", errors.New("no")), 0, false, refusedPause,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := &watched[claim]{name: "claims", keep: claimOf, changed: func() {}}
			w.set(map[string]claim{"a": {name: "a"}}, true, false)
			assert.Equal(t, tc.longest, w.judge(t.Context(), tc.err))
			items, known := w.list()
			assert.Len(t, items, tc.items)
			assert.Equal(t, tc.known, known)
		})
	}
}

func TestAShelfTellsChangesAndNothingElse(t *testing.T) {
	changes := 0
	w := &watched[claim]{name: "claims", keep: claimOf, changed: func() { changes++ }}
	s := &shelf[claim]{watched: w, ctx: t.Context()}
	a := func(value, more string) *unstructured.Unstructured {
		return object(t, `{"metadata":{"name":"a"`+more+`},"spec":{"value":"`+value+`"}}`)
	}
	steps := []struct {
		what  string
		do    func() error
		tells bool
		want  []claim
	}{
		{"the first list", func() error { return s.Replace([]any{a("1", "")}, "1") }, true, []claim{{name: "a", value: "1"}}},
		{"the same list", func() error { return s.Replace([]any{a("1", "")}, "2") }, false, []claim{{name: "a", value: "1"}}},
		{"another version of the same", func() error { return s.Update(a("1", `,"resourceVersion":"9"`)) }, false,
			[]claim{{name: "a", value: "1"}}},
		{"another value", func() error { return s.Add(a("2", "")) }, true, []claim{{name: "a", value: "2"}}},
		{"a value that cannot be reported", func() error { return s.Update(a("", "")) }, true, []claim{}},
		{"the same again", func() error { return s.Update(a("", "")) }, false, []claim{}},
		{"one more that is good", func() error { return s.Update(a("3", "")) }, true, []claim{{name: "a", value: "3"}}},
		{"it goes", func() error { return s.Delete(a("3", "")) }, true, []claim{}},
		{"a list with one that cannot be reported", func() error { return s.Replace([]any{a("", "")}, "3") }, false, []claim{}},
	}
	for _, step := range steps {
		before := changes
		require.NoError(t, step.do(), step.what)
		assert.Equal(t, step.tells, changes > before, step.what)
		items, known := w.list()
		assert.Equal(t, step.want, items, step.what)
		assert.True(t, known, step.what)
	}
	require.Error(t, s.Update("a tombstone"))
	require.Error(t, s.Replace([]any{7}, ""))
}
