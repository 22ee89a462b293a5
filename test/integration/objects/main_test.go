// Package objects_test watches single objects of kinds that come and go, with permissions that come later, at a real
// API server that restarts.
package objects_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "objects"})
	})
}

// watched is a Watcher with the identity of a user of its own, whose requests are counted.
type watched struct {
	*objectwatch.Watcher
	user string

	mu sync.Mutex
	// open are the requests that watch, by the selector of their object; discoveries counts those of discovery, and
	// changes the calls of the callback.
	open        map[string]int
	discoveries int
	changes     map[objectwatch.Ref]int
}

// watch starts a Watcher that ends with the test.
func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{user: suite.UniqueName("reader"), open: map[string]int{}, changes: map[objectwatch.Ref]int{}}
	config, err := plane.User(w.user)
	require.NoError(t, err)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next: next, watched: w} })
	w.Watcher, err = objectwatch.New(rest.CopyConfig(config), 0, func(ref objectwatch.Ref) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changes[ref]++
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

// counting counts requests.
type counting struct {
	next    http.RoundTripper
	watched *watched
}

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	selector := query.Get("fieldSelector")
	if selector == "" {
		c.watched.count(func(w *watched) { w.discoveries++ })
	}
	response, err := c.next.RoundTrip(request)
	if err == nil && query.Get("watch") != "" && response.StatusCode == http.StatusOK {
		c.watched.count(func(w *watched) { w.open[selector]++ })
		response.Body = &body{ReadCloser: response.Body, closed: sync.OnceFunc(func() {
			c.watched.count(func(w *watched) { w.open[selector]-- })
		})}
	}
	return response, err // a transport passes errors on
}

func (w *watched) count(change func(*watched)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// body is the body of the response of a watch.
type body struct {
	io.ReadCloser
	closed func()
}

func (b *body) Close() error {
	b.closed()
	return b.ReadCloser.Close() // as above
}

// permit lets the user of the Watcher list and watch objects of a resource: those with the names, or all.
func (w *watched) permit(t *testing.T, group, resource string, names ...string) {
	t.Helper()
	name := suite.UniqueName("reader")
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"list", "watch"},
		}},
	}))
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: w.user}},
	}))
}

// await waits for the state of an object: its phase, and the value of its field or the reason.
func (w *watched) await(t *testing.T, ref objectwatch.Ref, want string) {
	t.Helper()
	suite.Eventually(t, func() error {
		if got := w.value(ref); got != want {
			return fmt.Errorf("%s is %s and not yet %s", ref, got, want)
		}
		return nil
	})
}

func (w *watched) value(ref objectwatch.Ref) string {
	state := w.Get(ref)
	switch state.Phase {
	case objectwatch.Found:
		for _, fields := range [][]string{{"data", "value"}, {"spec", "value"}} {
			if value, found, _ := unstructured.NestedString(state.Object.Object, fields...); found {
				return state.Object.GroupVersionKind().Version + "/" + value
			}
		}
		return "empty"
	case objectwatch.Missing:
		return "missing"
	default:
		return string(state.Cause.Reason)
	}
}

// awaitWatches waits until exactly these objects are watched, each once.
func (w *watched) awaitWatches(t *testing.T, names ...string) {
	t.Helper()
	want := map[string]int{}
	for _, name := range names {
		want["metadata.name="+name] = 1
	}
	suite.Eventually(t, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		total := 0
		for selector, n := range w.open {
			if n != want[selector] {
				return fmt.Errorf("%d watches are open for %s and not %d", n, selector, want[selector])
			}
			total += n
		}
		if total != len(names) {
			return fmt.Errorf("%d watches are open and not %d", total, len(names))
		}
		return nil
	})
}

// configMap returns a reference to a ConfigMap.
func configMap(namespace, name string) objectwatch.Ref {
	return objectwatch.Ref{Resource: "configmaps", Namespace: namespace, Name: name}
}

// writeConfigMap creates or updates a ConfigMap.
func writeConfigMap(t *testing.T, ref objectwatch.Ref, value string) {
	t.Helper()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}, Data: map[string]string{"value": value},
	}
	if err := plane.Client.Update(t.Context(), object); err != nil {
		require.NoError(t, plane.Client.Create(t.Context(), object))
	}
}

// definition returns the definition of a cluster-scoped kind of its own with the served versions; the last is stored.
func definition(group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
		},
	}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve,
			}},
		})
	}
	return crd
}

// widget returns a widget with a value.
func widget(group, version, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": "Widget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"value": value},
	}}
}
