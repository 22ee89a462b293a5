package objectwatch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	widgets      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	namedRef     = Ref{Group: "example.com", Resource: "widgets", Namespace: "ns", Name: "a"}
	errForbidden = apierrors.NewForbidden(widgets.GroupResource(), "", errDenied)
	errDenied    = errors.New("user me cannot list resource widgets")
	errGone      = apierrors.NewNotFound(widgets.GroupResource(), "")
	errDown      = errors.New("connection refused")
)

func TestWhatIsKnownOfAnObject(t *testing.T) {
	served := kind{phase: kindServed, resource: widgets, namespaced: true}
	object := &unstructured.Unstructured{}
	for name, c := range map[string]struct {
		kind kind
		seen observed
		// ref is namedRef if it is empty.
		ref     Ref
		phase   Phase
		reason  Reason
		message string
	}{
		"a kind that was not looked up": {reason: Pending, message: "widgets.example.com ns/a has not been read yet"},
		"a kind that cannot be looked up": {
			kind: kind{err: errDown}, reason: Unavailable,
			message: "widgets.example.com ns/a cannot be read, because the discovery of its kind fails: connection refused",
		},
		"a kind that is not served": {
			kind: kind{phase: kindAbsent}, reason: NotServed,
			message: `widgets.example.com ns/a cannot be read, because the API server serves no resource "widgets" in API ` +
				`group example.com; install its CustomResourceDefinition or correct the reference`,
		},
		"a core kind that is not served": {
			kind: kind{phase: kindAbsent}, ref: Ref{Resource: "widgets", Name: "a"}, reason: NotServed,
			message: `widgets a cannot be read, because the API server serves no resource "widgets" in the core API group; ` +
				`install its CustomResourceDefinition or correct the reference`,
		},
		"a kind that nobody may watch": {
			kind: kind{phase: kindUnwatchable}, reason: NotServed,
			message: `widgets.example.com ns/a cannot be read, because the API server does not let anybody list and watch ` +
				`resource "widgets" in API group example.com`,
		},
		"a namespace where none belongs": {
			kind: kind{phase: kindServed}, reason: WrongScope,
			message: "widgets.example.com ns/a cannot be read, because objects of this kind are in no namespace and the " +
				"reference has one; remove the namespace",
		},
		"no namespace where one belongs": {
			kind: served, ref: Ref{Group: "example.com", Resource: "widgets", Name: "a"}, reason: WrongScope,
			message: "widgets.example.com a cannot be read, because objects of this kind are in namespaces and the " +
				"reference has none; add the namespace",
		},
		"an object beyond the limit": {
			kind: served, seen: observed{beyond: true}, reason: LimitExceeded,
			message: "widgets.example.com ns/a is not read, because more objects are referenced than may be watched (7)",
		},
		"an object that was not read": {
			kind: served, reason: Pending, message: "widgets.example.com ns/a has not been read yet",
		},
		"a list that is forbidden": {
			kind: served, seen: observed{list: errForbidden, watch: errDown}, reason: Forbidden,
			message: `widgets.example.com ns/a cannot be read: widgets.example.com is forbidden: user me cannot list ` +
				`resource widgets; grant the verbs list and watch on resource "widgets" in API group example.com`,
		},
		"a watch that is forbidden after a list": {
			kind: served, seen: observed{synced: true, object: object, watch: errForbidden}, reason: Forbidden,
			message: `widgets.example.com ns/a cannot be read: widgets.example.com is forbidden: user me cannot list ` +
				`resource widgets; grant the verbs list and watch on resource "widgets" in API group example.com`,
		},
		"a kind that is gone": {
			kind: served, seen: observed{synced: true, object: object, list: errGone}, reason: NotServed,
			message: "widgets.example.com ns/a cannot be read, because the API server does not serve its kind any more: " +
				`widgets.example.com "" not found`,
		},
		"an API server that never answered": {
			kind: served, seen: observed{list: errDown}, reason: Unavailable,
			message: "widgets.example.com ns/a cannot be read: connection refused",
		},
		"an object":                {kind: served, seen: observed{synced: true, object: object}, phase: Found},
		"an object that is absent": {kind: served, seen: observed{synced: true}, phase: Missing},
		"an object, then silence": {
			kind: served, seen: observed{synced: true, object: object, watch: errDown}, phase: Found,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := c.ref
			if ref == (Ref{}) {
				ref = namedRef
			}
			got := stateOf(ref, c.kind, c.seen, 7)
			assert.Equal(t, c.phase, got.Phase)
			if c.phase != Unknown {
				assert.Nil(t, got.Cause)
				assert.Equal(t, c.seen.object, got.Object)
				return
			}
			assert.Equal(t, &Cause{Reason: c.reason, Message: c.message}, got.Cause)
			assert.Nil(t, got.Object)
		})
	}
}

func TestStatesThatACallerCannotTellApartAreTheSame(t *testing.T) {
	object := func(version, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "resourceVersion": version}, "spec": map[string]any{"v": value},
		}}
	}
	found := func(version, value string) State { return State{Phase: Found, Object: object(version, value)} }
	unknown := func(reason Reason, message string) State {
		return State{Cause: &Cause{Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		a, b State
		want bool
	}{
		"the same version":                   {found("1", "x"), found("1", "x"), true},
		"another version with the same":      {found("1", "x"), found("2", "x"), true},
		"another value":                      {found("1", "x"), found("2", "y"), false},
		"found and missing":                  {found("1", "x"), State{Phase: Missing}, false},
		"missing twice":                      {State{Phase: Missing}, State{Phase: Missing}, true},
		"two messages of a silent server":    {unknown(Unavailable, "a"), unknown(Unavailable, "b"), true},
		"two messages about permissions":     {unknown(Forbidden, "a"), unknown(Forbidden, "b"), false},
		"a silent server and no permission":  {unknown(Unavailable, "a"), unknown(Forbidden, "a"), false},
		"no permission and a silent server":  {unknown(Forbidden, "a"), unknown(Unavailable, "a"), false},
		"the same message about permissions": {unknown(Forbidden, "a"), unknown(Forbidden, "a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.a.Object.DeepCopy()
			assert.Equal(t, c.want, c.a.same(c.b))
			assert.Equal(t, before, c.a.Object, "the object is shared")
		})
	}
}

func TestAKindIsFoundInItsPreferredVersion(t *testing.T) {
	resource := func(name string, verbs ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, Namespaced: true, Verbs: verbs}
	}
	list := func(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: version, APIResources: resources}
	}
	group := &metav1.APIGroup{
		Name:             "example.com",
		PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v2"},
		Versions:         []metav1.GroupVersionForDiscovery{{Version: "v2"}, {Version: "v1"}},
	}
	other := &metav1.APIGroup{Name: "other.com", PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v9"}}
	groups := []*metav1.APIGroup{other, group}
	v2 := schema.GroupVersion{Group: "example.com", Version: "v2"}
	served := func(version string) kind {
		return kind{
			phase: kindServed, namespaced: true,
			resource: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"},
		}
	}
	for name, c := range map[string]struct {
		answer discovered
		before kind
		want   kind
	}{
		"two versions": {
			answer: discovered{groups: groups, lists: []*metav1.APIResourceList{
				list("example.com/v1", resource("widgets", "list", "watch")),
				list("example.com/v2", resource("widgets/status", "get"), resource("widgets", "list", "watch")),
			}},
			want: served("v2"),
		},
		"only the version that is not preferred has it": {
			answer: discovered{groups: groups, lists: []*metav1.APIResourceList{
				list("example.com/v2", resource("others", "list", "watch")),
				list("example.com/v1", resource("widgets", "list", "watch")),
			}},
			want: served("v1"),
		},
		"only an older version can be watched": {
			answer: discovered{groups: groups, lists: []*metav1.APIResourceList{
				list("example.com/v2", resource("widgets", "create")),
				list("example.com/v1", resource("widgets", "list", "watch")),
			}},
			want: served("v1"),
		},
		"no version can be watched": {
			answer: discovered{groups: groups, lists: []*metav1.APIResourceList{
				list("example.com/v2", resource("widgets", "create", "list")),
			}},
			want: kind{phase: kindUnwatchable},
		},
		"no such group":    {before: served("v1"), want: kind{phase: kindAbsent}},
		"no such resource": {answer: discovered{groups: groups}, want: kind{phase: kindAbsent}},
		"nothing is known": {answer: discovered{err: errDown}, before: served("v1"), want: func() kind {
			k := served("v1")
			k.err = errDown
			return k
		}()},
		"the preferred version does not answer": {
			answer: discovered{
				groups: groups, failed: map[schema.GroupVersion]error{v2: errDown},
				lists: []*metav1.APIResourceList{list("example.com/v1", resource("widgets", "list", "watch"))},
			},
			want: kind{err: errDown},
		},
		"the only version does not answer and its group is not listed": {
			answer: discovered{failed: map[schema.GroupVersion]error{v2: errDown}}, want: kind{err: errDown},
		},
		"another group does not answer": {
			answer: discovered{
				groups: groups, failed: map[schema.GroupVersion]error{{Group: "other.com", Version: "v9"}: errDown},
				lists: []*metav1.APIResourceList{list("example.com/v1", resource("widgets", "list", "watch"))},
			},
			before: kind{err: errDown}, want: served("v1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.answer.find(widgets.GroupResource(), c.before))
		})
	}
}

func TestCoreKindsAreFound(t *testing.T) {
	answer := discovered{
		groups: []*metav1.APIGroup{{PreferredVersion: metav1.GroupVersionForDiscovery{Version: "v1"}}},
		lists: []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
		}}},
	}
	assert.Equal(t, kind{
		phase: kindServed, namespaced: true, resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}, answer.find(schema.GroupResource{Resource: "configmaps"}, kind{}))
}

func TestObjectsAreTrimmed(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "x",
		}},
		"data": map[string]any{"k": "v"}, "status": map[string]any{"phase": "Ready"},
	}}
	trim(object)
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"mine": "x"}},
		"data":     map[string]any{"k": "v"},
	}, object.Object)
}
