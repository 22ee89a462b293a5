package work

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnObjectIsOnlyMadeAnewWhenThatIsAccepted(t *testing.T) {
	const list, path = "/api/v1/namespaces/ns/secrets", "/api/v1/namespaces/ns/secrets/s"
	tried := "POST " + list + " dry"
	for name, c := range map[string]struct {
		answer    func(method, path string) (int, any)
		mayDelete func(context.Context) error
		offline   bool
		fails     string
		asked     []string
	}{
		"accepted": {asked: []string{"DELETE " + path, "POST " + list, tried}},
		"refused": {
			answer: func(method, _ string) (int, any) {
				if method == http.MethodPost {
					return http.StatusForbidden, apiRefusal(http.StatusForbidden, metav1.StatusReasonForbidden)
				}
				return 0, nil
			},
			fails: "it stays as it is", asked: []string{tried},
		},
		"the executor may not delete": {
			mayDelete: func(context.Context) error { return errors.New("lacks delete") },
			fails:     "lacks delete", asked: []string{tried},
		},
		"the executor may delete": {
			mayDelete: func(context.Context) error { return nil }, asked: []string{"DELETE " + path, "POST " + list, tried},
		},
		"the hub is away": {offline: true, fails: "when the hub is back"},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque}`)
			live.SetUID("live")
			s, client := newStub(t, map[string]*unstructured.Unstructured{path: live})
			s.answer = c.answer
			desired := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: example.com/x}`)
			one := &task{
				manifest: &manifest{
					gvk:      schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
					resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, namespace: "ns", name: "s",
				},
				now: epoch, offline: c.offline, mayDelete: c.mayDelete,
			}
			made, err := (&applier{spoke: client}).recreate(t.Context(), one, live, desired)
			assert.Equal(t, c.asked, s.requests())
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				assert.Same(t, live, made, "what is there is still known")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "made", string(made.GetUID()))
		})
	}
}
