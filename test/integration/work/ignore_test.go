package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	annotationHash = "open-cluster-management.io/config-spec-hash"
	present        = workv1.IgnoreFieldsConditionOnSpokePresent
)

// ignoring is server-side apply that ignores fields.
func ignoring(fields ...workv1.IgnoreField) workv1.UpdateStrategy {
	return workv1.UpdateStrategy{
		Type:            workv1.UpdateStrategyTypeServerSideApply,
		ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: fields},
	}
}

// data waits until a ConfigMap of the test has the data.
func (e *env) data(name string, want map[string]string) *corev1.ConfigMap {
	e.Helper()
	cm := &corev1.ConfigMap{}
	e.eventually(fmt.Sprintf("%s should have %v", name, want), func() bool {
		return e.get(cm, e.cluster, name) && assert.ObjectsAreEqual(want, cm.Data)
	})
	return cm
}

// put sets a key of a ConfigMap as another client.
func (e *env) put(name, key, value string) {
	e.Helper()
	cm := e.configMap(name, nil)
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, value)
	require.NoError(e, e.Patch(e.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(patch)),
		client.FieldOwner("somebody")))
}

// Shows: work/ignore-on-change
func TestIgnoreOnSpokeChange(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"kept": "1", "tuned": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("a", ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".data.tuned"},
	}))}
	e.create(w)
	e.settled(w)
	cm := e.data("a", map[string]string{"kept": "1", "tuned": "1"})
	assert.NotEmpty(t, cm.Annotations[annotationHash])
	assert.Len(t, cm.OwnerReferences, 1)

	e.quiet(a)
	n := a.spoke.count()
	e.put("a", "tuned", "9")
	e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)), "what is ignored is not written again")
	e.data("a", map[string]string{"kept": "1", "tuned": "9"})

	e.put("a", "kept", "hacked")
	e.data("a", map[string]string{"kept": "1", "tuned": "9"})
	e.quiet(a)
	a.stop()

	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) > 0 })
	e.quiet(again)
	assert.Empty(t, writes(again.spoke.since(0)), "a restart writes nothing")
	e.put("a", "kept", "hacked again")
	e.data("a", map[string]string{"kept": "1", "tuned": "9"})

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"kept": "2", "tuned": "2"}))
	})
	e.settled(w)
	e.data("a", map[string]string{"kept": "2", "tuned": "2"})
}

// Shows: work/ignore-on-present, work/ignore-on-change
func TestIgnoreOnSpokePresent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"kept": "1", "left": "1", "alone": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".data.left", ".data.alone"},
	}))}
	e.create(w)
	e.settled(w)
	e.data("a", map[string]string{"kept": "1", "left": "1", "alone": "1"})

	e.put("a", "left", "theirs")
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(
			e.configMap("a", map[string]string{"kept": "2", "left": "2", "alone": "2"}))
	})
	e.settled(w)
	e.data("a", map[string]string{"kept": "2", "left": "theirs", "alone": "1"})

	e.put("a", "kept", "hacked")
	e.data("a", map[string]string{"kept": "2", "left": "theirs", "alone": "1"})
	e.quiet(a)

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"kept": "2", "left": "2"}))
	})
	e.data("a", map[string]string{"kept": "2", "left": "theirs"})

	require.NoError(t, e.Delete(t.Context(), e.configMap("a", nil)))
	e.data("a", map[string]string{"kept": "2", "left": "2"})
}

// Shows: work/ignore-pointer
func TestIgnoreByPointer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", map[string]string{"a.b/c": "1", "kept": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("a", ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPointers: []string{"/data/kept", "/data/none"},
	}))}
	w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"other": "1", "kept": "1"}))
	e.create(w)
	e.settled(w)
	e.put("a", "kept", "theirs")
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"other": "2", "kept": "2"}))
	})
	e.data("a", map[string]string{"other": "2", "kept": "theirs"})
}

const sidecars = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "example.com/web:1", env: [{name: KEPT, value: "%[2]d"}, {name: LEFT, value: "%[2]d"}]}
      - {name: side, image: "example.com/side:%[2]d"}
`

// deployments is the configuration of all Deployments of the test.
func (e *env) deployments(s workv1.UpdateStrategy) []workv1.ManifestConfigOption {
	return []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "apps", Resource: "deployments", Namespace: e.cluster, Name: "*",
		},
		UpdateStrategy: &s,
	}}
}

// Shows: work/ignore-jq
func TestIgnoreByJQ(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", fmt.Sprintf(sidecars, e.cluster, 1))
	w.Spec.ManifestConfigs = e.deployments(ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokePresent,
		JQPathExpressions: []string{
			`.spec.template.spec.containers[] | select(.name == "web") | .env[] | select(.name == "LEFT")`,
			`.spec.template.spec.containers[] | select(.name == "side")`,
		},
	}))
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(sidecars, e.cluster, 2))
	})
	e.settled(w)
	var live appsv1.Deployment
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, int32(2), ptr.Deref(live.Spec.Replicas, 0))
	containers := live.Spec.Template.Spec.Containers
	require.Len(t, containers, 2)
	for _, c := range containers {
		if c.Name == "side" {
			assert.Equal(t, "example.com/side:1", c.Image, "an ignored element stays as it is")
			continue
		}
		assert.ElementsMatch(t, []corev1.EnvVar{{Name: "KEPT", Value: "2"}, {Name: "LEFT", Value: "1"}}, c.Env)
	}
	e.quiet(a)
	a.stop()
	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) > 0 })
	e.quiet(again)
	assert.Empty(t, writes(again.spoke.since(0)))
}

// Shows: work/ignore-bad
func TestBadIgnoreFieldsAreTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("jq", nil), e.configMap("path", nil), e.configMap("pointer", nil), e.configMap("good", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.strategy("jq", ignoring(workv1.IgnoreField{Condition: present, JQPathExpressions: []string{".data["}})),
		e.strategy("path", ignoring(workv1.IgnoreField{Condition: present, JSONPaths: []string{".data[?(@.x==].y"}})),
		e.strategy("pointer", ignoring(workv1.IgnoreField{Condition: present, JSONPointers: []string{"data"}})),
	}
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	for i, text := range []string{"jq expression", "JSON path", "JSON pointer"} {
		failed := manifestCondition(w, i, workv1.ManifestApplied)
		assert.Equal(t, workv1.AppliedManifestSSAIgnoreFieldError, failed.Reason)
		assert.Contains(t, failed.Message, "Failed to process ignoreFields: the "+text)
		assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, []string{"jq", "path", "pointer"}[i]))
	}
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 3, workv1.ManifestApplied).Status)
	n, _ := e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	e.settled(w)
	assert.NotEmpty(t, a.spoke.since(n))
}

// TestReplicasOfOthersUnderServerSideApply lets a user scale a Deployment whose replicas are ignored, and one whose
// manifest does not mention them.
// Shows: work/scaled-object
func TestReplicasOfOthersUnderServerSideApply(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", fmt.Sprintf(sidecars, e.cluster, 1))
	w.Spec.ManifestConfigs = e.deployments(ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".spec.replicas"},
	}))
	e.create(w)
	e.settled(w)
	n, _ := e.quiet(a)
	e.scale("web", 4)
	e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)), "scaling disturbs nothing")
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(sidecars, e.cluster, 2))
	})
	e.settled(w)
	e.quiet(a)
	var live appsv1.Deployment
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, int32(4), ptr.Deref(live.Spec.Replicas, 0))
	assert.Equal(t, "2", live.Spec.Template.Spec.Containers[0].Env[0].Value)
}

// scale sets the replicas of a Deployment in the way in which an autoscaler does.
func (e *env) scale(name string, replicas int32) {
	e.Helper()
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	require.NoError(e, e.SubResource("scale").Patch(e.Context(), live,
		client.RawPatch("application/merge-patch+json", patch), client.FieldOwner("autoscaler")))
}
