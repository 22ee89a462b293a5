package work_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completes serves a webhook that completes widgets when they are created, as many operators do, and waits until it is
// in force.
func (e *env) completes(generated string) {
	e.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		assert.NoError(e, json.NewDecoder(r.Body).Decode(&review))
		uid, _, _ := unstructured.NestedString(review, "request", "uid")
		patch := fmt.Sprintf(`[{"op":"add","path":"/spec/generated","value":%q}]`, generated)
		assert.NoError(e, json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{
				"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": base64.StdEncoding.EncodeToString([]byte(patch)),
			},
		}))
	}))
	e.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	e.create(e.unstructuredOf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: complete.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {url: "%[2]s/x", caBundle: %[3]s}
  rules: [{apiGroups: ["%[1]s.example"], apiVersions: ["*"], operations: [CREATE], resources: [widgets]}]
`, e.cluster, server.URL, base64.StdEncoding.EncodeToString(ca)))
	dry := client.NewDryRunClient(e.Client)
	e.eventually("the webhook is in force", func() bool {
		trial := e.unstructuredOf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: trial, namespace: %[1]s}, spec: {size: 1}}",
			e.cluster)
		_, completed, _ := unstructured.NestedString(trial.Object, "spec", "generated")
		if err := dry.Create(e.Context(), trial); err == nil {
			_, completed, _ = unstructured.NestedString(trial.Object, "spec", "generated")
		}
		return completed
	})
}

// TestWhatWasCompletedAtTheCreationStays: the answer to a creation tells what the API server completed, so it is read
// however large it is. Sent again, the manifest would take away what a webhook generated once.
func TestWhatWasCompletedAtTheCreationStays(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		bytes int
		later bool
	}{
		"the answer is larger than was guessed": {8000, false},
		"the creation was refused at first":     {1000, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.allowWidgets()
			e.create(e.unstructuredOf(widgets, e.cluster))
			e.completes(strings.Repeat("g", c.bytes))
			space := e.cluster
			if c.later {
				space += "-later"
			}
			a := e.start()
			w := e.work("w", fmt.Sprintf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[2]s}, spec: {size: 1}}",
				e.cluster, space))
			e.create(w)
			if c.later {
				e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
				e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
			}
			e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
			e.quiet(a)
			live := e.unstructuredOf("{apiVersion: %[1]s.example/v1, kind: Widget}", e.cluster)
			require.NoError(t, e.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "x"}, live))
			generated, _, _ := unstructured.NestedString(live.Object, "spec", "generated")
			assert.Len(t, generated, c.bytes)
		})
	}
}

// TestALargeRoleIsAppliedWhenItsExecutorGetsTheLastRight: nothing of a run whose answer was too large counts.
func TestALargeRoleIsAppliedWhenItsExecutorGetsTheLastRight(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	var rules []rbacv1.PolicyRule
	for i := range 24 {
		rules = append(rules, rule("apps.example.com", fmt.Sprintf("things-of-kind-%d", i), "get", "list", "watch"))
	}
	e.role("writer", rule(rbacv1.GroupName, "roles", allVerbs...))
	e.bind("writer", e.account())
	e.role("holds", rules[1:]...)
	e.bind("holds", e.account())
	w := e.executed("w", &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "target"}, Rules: rules,
	})
	e.create(w)
	e.applies(w, no)
	e.quiet(a)
	e.role("rest", rules[0])
	e.bind("rest", e.account())
	e.applies(w, yes)
}

// TestALargeDefinitionThatServesNothingIsNamed deletes an object whose kind has a definition without a served version.
func TestALargeDefinitionThatServesNothingIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	e.allow("apiextensions.k8s.io", "customresourcedefinitions")
	definition := e.unstructuredOf(strings.Replace(anyWidgets, "type: object,", `type: object, description: "`+
		strings.Repeat("d", 6000)+`",`, 1), e.cluster)
	e.create(definition)
	a := e.start()
	w := e.work("w", e.widget("v1", "first"))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	serve := func(served bool) {
		patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/versions/0/served", "value": %t}]`, served)
		require.NoError(t, e.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, patch)))
	}
	serve(false)
	e.eventually("the version is not served any more", func() bool {
		return e.Get(t.Context(), client.ObjectKey{Namespace: e.cluster, Name: "first"}, e.widget("v1", "first")) != nil
	})
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the status says what to do", func() bool {
		if e.Get(t.Context(), client.ObjectKeyFromObject(w), w) != nil {
			return false
		}
		text, err := json.Marshal(w.Status.Conditions)
		return err == nil && strings.Contains(string(text), "serve one")
	})
	serve(true)
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

// TestOthersAreAppliedWhileLargeObjectsWait: the API server does not answer about the large objects of one author, of
// more works than there are workers.
//
// Shows: work/decode-bounded
func TestOthersAreAppliedWhileLargeObjectsWait(t *testing.T) {
	for sentence, c := range map[string]struct{ works, bytes int }{
		"two objects that take all the room": {2, 520_000}, "a work more than there are workers": {11, 130_000},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := newEnv(t)
			sent, answer := make(chan struct{}), make(chan struct{})
			var once sync.Once
			e.settings.fault = func(r *http.Request) bool {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
					once.Do(func() { close(sent) })
					select {
					case <-answer:
					case <-r.Context().Done():
					}
				}
				return false
			}
			e.start()
			var slow []*workv1.ManifestWork
			for i := range c.works {
				secret := e.secret(fmt.Sprint("slow", i))
				secret.StringData, secret.Data = nil, map[string][]byte{"k": []byte(strings.Repeat("x", c.bytes*3/4))}
				slow = append(slow, e.work(secret.Name, secret))
				e.create(slow[i])
			}
			<-sent
			for name, bytes := range map[string]int{"tiny": 10, "of-5-kb": 5_000, "of-12-kb": 12_000} {
				w := e.work(name, e.configMap(name, map[string]string{"k": strings.Repeat("x", bytes)}))
				e.create(w)
				e.settled(w)
			}
			close(answer)
			for _, w := range slow {
				e.settled(w)
			}
		})
	}
}
