package work_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shows: work/status-does-not-block
func TestDeletionDoesNotWaitForTheHubToTakeAStatus(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.hubFault = func(req *http.Request) error {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/status") {
			return errors.New("the hub takes no status")
		}
		return nil
	}
	e.start()
	held := e.configMap("held", nil)
	held.Finalizers = []string{hold}
	w := e.work("w", held, e.configMap("free", nil))
	e.create(w)
	e.eventually("the objects are made", func() bool {
		return e.get(&corev1.ConfigMap{}, e.cluster, "held") && e.get(&corev1.ConfigMap{}, e.cluster, "free")
	})
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the free one is gone", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "free") })
	e.letGo(&corev1.ConfigMap{}, e.cluster, "held")
	e.gone("w")
}

// TestASilentHubDoesNotHoldUpTheSpoke lets the hub never answer when it is given a status.
//
// Shows: work/status-does-not-block
func TestASilentHubDoesNotHoldUpTheSpoke(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var asked atomic.Int32
	e.settings.hubFault = func(req *http.Request) error {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/status") {
			asked.Add(1)
			<-req.Context().Done()
			return req.Context().Err()
		}
		return nil
	}
	e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "0"}))
	e.create(w)
	var cm corev1.ConfigMap
	e.eventually("the object is made", func() bool { return e.get(&cm, e.cluster, "a") })
	// The first pass waits for the hub, the ones after it do not.
	for round := range 5 {
		cm.Data = map[string]string{"k": fmt.Sprint("hacked ", round)}
		require.NoError(t, e.Update(t.Context(), &cm))
		e.eventually("drift is repaired", func() bool { return e.get(&cm, e.cluster, "a") && cm.Data["k"] == "0" })
	}
	assert.EqualValues(t, 1, asked.Load(), "and the hub is left alone for a while")
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}

// Shows: work/labels-and-finalizer
func TestLabelsAndFinalizerOfTheRecordAreKept(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", nil))
	w.Labels = map[string]string{"one": "1", "two": "2"}
	e.create(w)
	e.settled(w)
	assert.Equal(t, w.Labels, e.applied().Labels)
	e.quiet(a)

	record := e.applied()
	record.Labels["foreign"] = "yes"
	require.NoError(t, e.Update(t.Context(), record))
	e.edit(w, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"two": "zwei", "three": "3"} })
	want := map[string]string{"two": "zwei", "three": "3", "foreign": "yes"}
	e.eventually("the labels follow", func() bool { return assert.ObjectsAreEqual(want, e.applied().Labels) })

	n, _ := e.quiet(a)
	e.letGo(&workv1.AppliedManifestWork{}, "", record.Name)
	e.eventually("the finalizer is put back", func() bool { return len(e.applied().Finalizers) == 1 })
	e.quiet(a)
	assert.Len(t, writes(a.spoke.since(n)), 1)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// refuse makes the API server deny an operation for which the CEL expression is not true, until the returned function
// is called. It returns when that is in force, which probe tells.
func (e *env) refuse(resource, operation, expression, message string, probe func() error) func() {
	e.Helper()
	group, plural := "", resource
	if at := strings.Index(resource, "."); at > 0 {
		plural, group = resource[:at], resource[at+1:]
	}
	policy := e.unstructuredOf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["%[2]s"], apiVersions: ["*"], operations: [%[3]s], resources: [%[4]s]}]
  validations: [{expression: %[5]q, message: %[6]q}]
`, e.cluster, group, operation, plural, expression, message)
	binding := e.unstructuredOf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`, e.cluster)
	e.create(policy)
	e.create(binding)
	lift := func() {
		for _, o := range []client.Object{binding, policy} {
			require.NoError(e, client.IgnoreNotFound(e.Delete(e.Context(), o)))
		}
	}
	e.eventually("the refusal is in force", func() bool {
		err := probe()
		return err != nil && strings.Contains(err.Error(), message)
	})
	return lift
}

// Shows: work/admission-does-not-block
func TestAHubThatDoesNotLetAWorkGoIsTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	lift := e.refuse("manifestworks.work.open-cluster-management.io", "UPDATE",
		"has(object.metadata.finalizers) && object.metadata.finalizers.size() > 0", "this hub keeps its works",
		func() error {
			return e.Patch(t.Context(), w.DeepCopy(), client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`)), client.DryRunAll)
		})
	require.NoError(t, e.Delete(t.Context(), w))
	e.deletingSays(w, "nothing is left on the spoke, but the hub refuses to let the work go: ")
	e.deletingSays(w, "this hub keeps its works")
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	lift()
	e.gone("w")
}

// Shows: work/waits-and-names, work/failed-deletion-kept
func TestAnObjectThatMayNotBeDeletedIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("precious", nil), e.configMap("free", nil))
	e.create(w)
	e.settled(w)
	lift := e.refuse("configmaps", "DELETE", "oldObject.metadata.name != 'precious'", "this one is precious", func() error {
		return e.Delete(t.Context(), e.configMap("precious", nil), client.DryRunAll)
	})
	require.NoError(t, e.Delete(t.Context(), w))
	e.deletingSays(w, "waiting for 1 object: configmaps "+e.cluster+"/precious (since ")
	e.deletingSays(w, "cannot be deleted: ")
	e.deletingSays(w, "this one is precious")
	assert.Equal(t, []string{"configmaps/precious"}, appliedNames(e.applied()))
	lift()
	e.gone("w")
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "precious"))
}
