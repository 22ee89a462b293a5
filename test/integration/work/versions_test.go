package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server serves one Event under two groups, as some serve one Ingress, or a Project and its Namespace.
func TestOneObjectUnderTwoGroupsIsNotDeletedByItsFormerEntry(t *testing.T) {
	t.Parallel()
	const common = `metadata: {name: x, namespace: %[1]s}, reason: R, type: Normal, action: A, reportingInstance: i,
		eventTime: "2026-01-01T00:00:00.000000Z"`
	e := newEnv(t)
	e.allow("", "events")
	e.allow("events.k8s.io", "events")
	a := e.start()
	w := e.work("w", fmt.Sprintf("{apiVersion: v1, kind: Event, "+common+`, reportingComponent: example.com/c, message: m,
		involvedObject: {apiVersion: v1, kind: Pod, namespace: %[1]s, name: p}}`, e.cluster))
	e.create(w)
	e.settled(w)
	was := &corev1.Event{}
	require.True(t, e.get(was, e.cluster, "x"))

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf("{apiVersion: events.k8s.io/v1, kind: Event, "+common+`,
			reportingController: example.com/c, note: m, regarding: {apiVersion: v1, kind: Pod, namespace: %[1]s, name: p}}`,
			e.cluster))
	})
	e.settled(w)
	e.quiet(a)
	now := &corev1.Event{}
	require.True(t, e.get(now, e.cluster, "x"), "the object that was applied is there")
	assert.Equal(t, was.UID, now.UID)
	listed := e.applied().Status.AppliedResources
	require.Len(t, listed, 1)
	assert.Equal(t, "events.k8s.io", listed[0].Group)
	assert.Equal(t, string(was.UID), listed[0].UID)

	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.False(t, e.get(&corev1.Event{}, e.cluster, "x"), "it still goes with its work")
}

// twoVersions installs widgets that are served in two versions, and returns what ends the older one.
func (e *env) twoVersions() (drop func()) {
	e.Helper()
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example}
spec:
  group: %[1]s.example
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1alpha1
    served: %[2]t
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	e.allowWidgets()
	e.create(e.unstructuredOf(definition, e.cluster, true))
	return func() {
		patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`)
		live := e.unstructuredOf(definition, e.cluster, true)
		require.NoError(e, e.Patch(e.Context(), live, client.RawPatch(types.JSONPatchType, patch)))
	}
}

// widget is a widget of the test in a version.
func (e *env) widget(version, name string) *unstructured.Unstructured {
	return e.unstructuredOf("{apiVersion: %[1]s.example/%[2]s, kind: Widget, metadata: {name: %[3]s, namespace: %[1]s}}",
		e.cluster, version, name)
}

func TestAnObjectWhoseVersionIsNotServedAnyMoreIsDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	drop := e.twoVersions()
	a := e.start()
	w := e.work("w", e.widget("v1alpha1", "first"), e.widget("v1alpha1", "second"), e.configMap("other", nil))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	drop()
	e.eventually("the version is not served any more", func() bool {
		err := e.Get(t.Context(), client.ObjectKey{Namespace: e.cluster, Name: "first"}, e.widget("v1alpha1", "first"))
		return err != nil
	})

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.widget("v1alpha1", "second"), e.configMap("other", nil))
	})
	there := func(name string) bool { return e.get(e.widget("v1", name), e.cluster, name) }
	e.eventually("the object of a manifest that was removed goes", func() bool { return !there("first") })
	e.is(w, workv1.WorkApplied, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "doesn't have a resource type")
	require.True(t, there("second"), "the object of one that is there stays")
	assert.Contains(t, appliedNames(e.applied()), "widgets/second", "and stays listed")

	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.False(t, there("second"), "it goes with its work")
}

func TestTwoVersionsOfOneObjectInOneWork(t *testing.T) {
	t.Parallel()
	const scaler = `{apiVersion: autoscaling/%[2]s, kind: HorizontalPodAutoscaler, metadata: {name: x, namespace: %[1]s},
		spec: {maxReplicas: %[3]d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`
	e := newEnv(t)
	e.allow("autoscaling", "horizontalpodautoscalers")
	a := e.start()
	w := e.work("w", fmt.Sprintf(scaler, e.cluster, "v1", 3), fmt.Sprintf(scaler, e.cluster, "v2", 5))
	e.create(w)
	e.applies(w, yes, no)
	assert.Contains(t, manifestCondition(w, 1, workv1.ManifestApplied).Message, fmt.Sprintf("duplicate manifest for resource "+
		"%s/x with resource type autoscaling/v2.HorizontalPodAutoscaler: the manifest with the ordinal 0 means the same object",
		e.cluster))
	n, _ := e.quiet(a)
	live := e.live(scaler, e.cluster, "v1", 0)
	size, _, _ := unstructured.NestedInt64(live.Object, "spec", "maxReplicas")
	assert.Equal(t, int64(3), size, "the first counts")
	assert.Empty(t, writes(a.spoke.since(n)))

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:] })
	e.settled(w)
	live = e.live(scaler, e.cluster, "v1", 0)
	size, _, _ = unstructured.NestedInt64(live.Object, "spec", "maxReplicas")
	assert.Equal(t, int64(5), size)
}

func TestASecretStaysWhenWhatIsToTakeItsPlaceIsRefused(t *testing.T) {
	t.Parallel()
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, type: %s, stringData: {k: v}}"
	e := newEnv(t)
	a := e.start()
	w := e.work("w", fmt.Sprintf(secret, e.cluster, "Opaque"))
	e.create(w)
	e.settled(w)
	was := &corev1.Secret{}
	require.True(t, e.get(was, e.cluster, "s"))
	lift := e.refuse("secrets", "CREATE", "!has(object.type) || object.type != 'example.com/no'", "not this type", func() error {
		return e.Create(t.Context(), e.unstructuredOf(secret, e.cluster, "example.com/no"), client.DryRunAll)
	})
	n, _ := e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(secret, e.cluster, "example.com/no"))
	})
	e.applies(w, no)
	message := manifestCondition(w, 0, workv1.ManifestApplied).Message
	assert.Contains(t, message, "it stays as it is")
	assert.Contains(t, message, "not this type")
	now := &corev1.Secret{}
	require.True(t, e.get(now, e.cluster, "s"))
	assert.Equal(t, was.UID, now.UID)
	assert.Empty(t, deletions(a.spoke.since(n)))

	lift()
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(secret, e.cluster, "example.com/yes"))
	})
	e.settled(w)
	require.True(t, e.get(now, e.cluster, "s"))
	assert.Equal(t, corev1.SecretType("example.com/yes"), now.Type)
}

func TestAnExecutorWithoutDeleteMakesNoSecretAnew(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	e.role("secrets", rule("", "secrets", "create", "update", "patch", "get"))
	e.bind("secrets", e.account())
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, type: %s, stringData: {k: v}}"
	w := e.executed("w", fmt.Sprintf(secret, e.cluster, "Opaque"))
	w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	e.create(w)
	e.applies(w, yes)
	was := &corev1.Secret{}
	require.True(t, e.get(was, e.cluster, "s"))
	n, _ := e.quiet(a)

	change := func(kind string) {
		e.edit(w, func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(secret, e.cluster, kind))
		})
	}
	change("example.com/one")
	e.applies(w, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "lacks delete")
	now := &corev1.Secret{}
	require.True(t, e.get(now, e.cluster, "s"))
	assert.Equal(t, was.UID, now.UID)
	assert.Empty(t, deletions(a.spoke.since(n)))

	e.role("more", rule("", "secrets", "delete"))
	e.bind("more", e.account())
	e.eventually("the right is in force", func() bool {
		change("example.com/two")
		return e.get(now, e.cluster, "s") && now.UID != was.UID
	})
	e.applies(w, yes)
}
