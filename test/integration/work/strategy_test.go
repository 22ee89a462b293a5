package work_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serverSide is server-side apply with a manager.
func serverSide(manager string, force bool) workv1.UpdateStrategy {
	return workv1.UpdateStrategy{
		Type:            workv1.UpdateStrategyTypeServerSideApply,
		ServerSideApply: &workv1.ServerSideApplyConfig{Force: force, FieldManager: manager},
	}
}

// Shows: work/ssa-apply
func TestServerSideApplyOwnsWhatItApplies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"ours": "1", "more": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", serverSide("work-agent-x", false))}
	e.create(w)
	e.settled(w)
	e.put("a", "theirs", "1")
	cm := e.data("a", map[string]string{"ours": "1", "more": "1", "theirs": "1"})
	held := map[string]string{}
	for _, entry := range cm.ManagedFields {
		held[entry.Manager+" "+string(entry.Operation)] = entry.FieldsV1.GetRawString()
	}
	assert.NotContains(t, held["work-agent-x Apply"], "ownerReferences", "the owner is held by the agent")
	assert.Contains(t, held["work-agent Update"], "ownerReferences")
	n, _ := e.quiet(a)
	assert.Len(t, a.spoke.since(0), 5, "the AppliedManifestWork, one to apply, one to hand over, the list, one look")

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"ours": "2"}))
	})
	e.settled(w)
	cm = e.data("a", map[string]string{"ours": "2", "theirs": "1"})
	require.Len(t, cm.OwnerReferences, 1)
	e.quiet(a)
	assert.Len(t, writes(a.spoke.since(n)), 1)

	n, _ = e.quiet(a)
	e.put("a", "theirs", "2")
	e.quiet(a)
	assert.Len(t, a.spoke.since(n), 1, "what others hold costs a look")
	assert.Empty(t, writes(a.spoke.since(n)))
	a.stop()

	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) > 0 })
	e.quiet(again)
	assert.Len(t, again.spoke.since(0), 1, "a restart costs a look")
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the object goes", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "a") })
}

// Shows: work/ssa-conflict, work/unknown-strategy
func TestServerSideApplyConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1", "other": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", serverSide("", false))}
	e.create(w)
	e.settled(w)
	e.put("a", "k", "theirs")
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	failed := manifestCondition(w, 0, workv1.ManifestApplied)
	assert.Equal(t, workv1.AppliedManifestFailed, failed.Reason)
	assert.Contains(t, failed.Message, `conflict with "somebody"`, "the manager")
	assert.Contains(t, failed.Message, ".data.k", "and the field are named")
	e.data("a", map[string]string{"k": "theirs", "other": "1"})
	n, _ := e.quiet(a)

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"other": "2"}))
	})
	e.settled(w)
	e.data("a", map[string]string{"k": "theirs", "other": "2"})
	assert.NotEmpty(t, a.spoke.since(n))

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "forced"}))
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.Force = true
	})
	e.settled(w)
	e.data("a", map[string]string{"k": "forced"})
}

// Shows: work/ssa-two-managers
func TestServerSideApplyOfTwoWorks(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	one := e.work("one", e.configMap("a", map[string]string{"one": "1"}))
	one.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", serverSide("work-agent-1", false))}
	two := e.work("two", e.configMap("a", map[string]string{"two": "2"}))
	two.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", serverSide("work-agent-2", false))}
	e.create(one)
	e.create(two)
	e.settled(one)
	e.settled(two)
	cm := e.data("a", map[string]string{"one": "1", "two": "2"})
	e.eventually("both own it", func() bool { return e.get(cm, e.cluster, "a") && len(cm.OwnerReferences) == 2 })
	e.quiet(a)

	e.edit(one, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	})
	e.eventually("an orphan has one owner less", func() bool {
		return e.get(cm, e.cluster, "a") && len(cm.OwnerReferences) == 1 &&
			strings.HasSuffix(cm.OwnerReferences[0].Name, "-two")
	})
	e.edit(one, func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
	e.eventually("and gets it back", func() bool { return e.get(cm, e.cluster, "a") && len(cm.OwnerReferences) == 2 })
	was := cm.UID
	require.NoError(t, e.Delete(t.Context(), one))
	e.eventually("one is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "one") })
	require.True(t, e.get(cm, e.cluster, "a"))
	assert.Equal(t, was, cm.UID)
	assert.Len(t, cm.OwnerReferences, 1)
}

// Shows: work/ssa-generation
func TestServerSideApplyKeepsTheGeneration(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	inner := e.work("inner", e.configMap("a", nil))
	inner.TypeMeta = metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"}
	raw, err := json.Marshal(inner)
	require.NoError(t, err)
	text := strings.Replace(string(raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1)
	e.allow("work.open-cluster-management.io", "manifestworks")
	w := e.work("w", text)
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "work.open-cluster-management.io", Resource: "manifestworks", Namespace: e.cluster, Name: "inner",
		},
		UpdateStrategy: ptr.To(serverSide("", true)),
	}}
	e.create(w)
	e.settled(w)
	e.settled(inner)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Foreground"}
	})
	e.settled(w)
	e.quiet(a)
	require.True(t, e.get(inner, e.cluster, "inner"))
	assert.Equal(t, int64(1), inner.Generation)
}

// allow lets agents apply a resource in the way that users are told to.
func (e *env) allow(group string, resources ...string) {
	e.Helper()
	e.create(e.unstructuredOf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {
		name: "%[1]s.%[2]s", labels: {open-cluster-management.io/aggregate-to-work: "true"}},
		rules: [{apiGroups: ["%[2]s"], resources: ["%[3]s"], verbs: ["*"]}]}`,
		e.cluster, group, strings.Join(resources, `", "`)))
}

func TestSecretUnderServerSideApply(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, stringData: {k: v}}",
		e.cluster))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: e.cluster, Name: "s"},
		UpdateStrategy:     ptr.To(serverSide("", true)),
	}}
	e.create(w)
	e.settled(w)
	var live corev1.Secret
	require.True(t, e.get(&live, e.cluster, "s"))
	live.Data["k"] = []byte("hacked")
	require.NoError(t, e.Update(t.Context(), &live))
	e.eventually("drift is repaired", func() bool { return e.get(&live, e.cluster, "s") && string(live.Data["k"]) == "v" })
	e.undisturbed(a, 1)
}

// TestSwitchToServerSideApply changes the strategy of an object that exists: the agent is not in conflict with itself,
// and what leaves the manifest then goes.
func TestSwitchToServerSideApply(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1", "old": "1"}))
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "2"}))
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("a", serverSide("", false))}
	})
	e.settled(w)
	cm := e.data("a", map[string]string{"k": "2"})
	assert.Len(t, cm.OwnerReferences, 1)
	n, _ := e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	e.settled(w)
	e.put("a", "added", "x")
	e.data("a", map[string]string{"k": "2"})
	e.quiet(a)
	assert.NotEmpty(t, a.spoke.since(n))
}

// TestCrashWhileApplying ends the agent right after it applied an object for the first time, and deletes the work
// before the next agent starts: the object had its owner from the first moment, so it goes.
// Shows: work/intent-first
func TestCrashWhileApplying(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var dead atomic.Bool
	e.settings.fault = func(req *http.Request) bool {
		if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/configmaps/a") {
			return dead.Swap(true) // The first goes through, with the last strength.
		}
		return dead.Load() && req.Method != http.MethodGet
	}
	a := e.start()
	w := e.work("w", e.configMap("a", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", serverSide("", false))}
	e.create(w)
	e.eventually("the object is there", func() bool { return e.get(&corev1.ConfigMap{}, e.cluster, "a") })
	a.stop()
	require.NoError(t, e.Delete(t.Context(), w))
	e.settings.fault = nil
	e.start()
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// Shows: work/create-only
func TestCreateOnlyLeavesADeployment(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", fmt.Sprintf(deployment, e.cluster))
	w.Spec.ManifestConfigs = e.deployments(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly})
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(strings.Replace(fmt.Sprintf(deployment, e.cluster), "web:1", "web:2", 1))
	})
	e.settled(w)
	e.quiet(a)
	var live appsv1.Deployment
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, "example.com/web:1", live.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(t, int64(1), live.Generation)
	assert.Len(t, live.OwnerReferences, 1)
}

// TestAnObjectMadeReadOnlyDoesNotGoWithItsWork switches the strategy of objects that the work owns.
// Shows: work/read-only-not-deleted
func TestAnObjectMadeReadOnlyDoesNotGoWithItsWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("updated", nil), e.configMap("applied", nil), e.configMap("owned", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("applied", serverSide("", false))}
	e.create(w)
	e.settled(w)
	readOnly := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
			e.strategy("updated", readOnly), e.strategy("applied", readOnly),
		}
	})
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	var cm corev1.ConfigMap
	for _, name := range []string{"updated", "applied"} {
		require.True(t, e.get(&cm, e.cluster, name), name)
		assert.Empty(t, cm.OwnerReferences)
	}
	assert.False(t, e.get(&cm, e.cluster, "owned"))
}

// Shows: work/read-only-wildcard
func TestReadOnlyWildcard(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	e.create(e.configMap("theirs-1", map[string]string{"k": "live"}))
	e.create(e.configMap("theirs-2", map[string]string{"k": "live"}))
	w := e.work("w", e.configMap("theirs-1", map[string]string{"k": "x"}), e.configMap("theirs-2", map[string]string{"k": "x"}),
		e.configMap("ours", map[string]string{"k": "x"}))
	first := e.strategy("theirs-*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly})
	first.FeedbackRules = []workv1.FeedbackRule{{
		Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "k", Path: ".data.k"}},
	}}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		first, e.strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}),
	}
	e.create(w)
	e.settled(w)
	e.quiet(a)
	for _, name := range []string{"theirs-1", "theirs-2"} {
		assert.Empty(t, e.data(name, map[string]string{"k": "live"}).OwnerReferences)
	}
	e.data("ours", map[string]string{"k": "x"})
	values := w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
	require.Len(t, values, 1)
	assert.Equal(t, "live", ptr.Deref(values[0].Value.String, ""))
}

// Shows: work/orphan-switched
func TestSwitchOfDeleteOption(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]workv1.UpdateStrategy{
		"update":     {Type: workv1.UpdateStrategyTypeUpdate},
		"createonly": {Type: workv1.UpdateStrategyTypeCreateOnly},
		"apply":      serverSide("", false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.start()
			w := e.work("w", e.configMap("a", nil), e.configMap("b", nil))
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", s)}
			w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
			e.create(w)
			e.settled(w)
			owners := func(a, b int) {
				t.Helper()
				e.eventually(fmt.Sprintf("owners should be %d and %d", a, b), func() bool {
					var one, two corev1.ConfigMap
					return e.get(&one, e.cluster, "a") && e.get(&two, e.cluster, "b") &&
						len(one.OwnerReferences) == a && len(two.OwnerReferences) == b
				})
			}
			owners(0, 0)
			e.edit(w, func(w *workv1.ManifestWork) {
				w.Spec.DeleteOption = &workv1.DeleteOption{
					PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
					SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{
						Resource: "configmaps", Namespace: e.cluster, Name: "a",
					}}},
				}
			})
			owners(0, 1)
			e.edit(w, func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
			owners(1, 1)
			require.NoError(t, e.Delete(t.Context(), w))
			e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
			assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
		})
	}
}

// TestAdoption has an object that exists before its work: it is adopted, and goes with it.
// Shows: work/adoption, work/bad-manifest-alone
func TestAdoption(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(e.configMap("a", map[string]string{"theirs": "1"}))
	e.start()
	w := e.work("w", e.configMap("a", map[string]string{"ours": "1"}))
	e.create(w)
	e.settled(w)
	assert.Len(t, e.data("a", map[string]string{"ours": "1"}).OwnerReferences, 1)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("it goes with the work", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "a") })
}

// TestScaledObjectUnderUpdate lets a user scale a Deployment whose manifest does not mention replicas.
// Shows: work/scaled-object
func TestScaledObjectUnderUpdate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	open := strings.Replace(fmt.Sprintf(deployment, e.cluster), "  replicas: 1\n", "", 1)
	w := e.work("w", open)
	e.create(w)
	e.settled(w)
	n, _ := e.quiet(a)
	e.scale("web", 4)
	e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)), "scaling disturbs nothing")
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(strings.Replace(open, "web:1", "web:2", 1))
	})
	e.settled(w)
	var live appsv1.Deployment
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, "example.com/web:2", live.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(t, int32(4), ptr.Deref(live.Spec.Replicas, 0), "a new manifest does not scale down")
	e.quiet(a)
	a.stop()
	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) > 0 })
	e.quiet(again)
	assert.Empty(t, writes(again.spoke.since(0)))

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(deployment, e.cluster))
	})
	e.settled(w)
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, int32(1), ptr.Deref(live.Spec.Replicas, 0), "a manifest that says how many is obeyed")
}

// TestARestartIsLeftAlone restarts a Deployment in the way of kubectl rollout restart, under either strategy that writes
// its content.
// Shows: work/restarted-workload
func TestARestartIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]workv1.UpdateStrategy{
		"update": {Type: workv1.UpdateStrategyTypeUpdate},
		"apply":  {Type: workv1.UpdateStrategyTypeServerSideApply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			a := e.start()
			text := fmt.Sprintf(deployment, e.cluster)
			w := e.work("w", text)
			w.Spec.ManifestConfigs = e.deployments(strategy)
			e.create(w)
			e.settled(w)
			e.quiet(a)

			e.restart("web", "2026-01-02T03:04:05Z")
			e.quiet(a)
			assert.Equal(t, "2026-01-02T03:04:05Z", e.restartedAt("web"))
			e.edit(w, func(w *workv1.ManifestWork) {
				w.Spec.Workload.Manifests = e.manifests(strings.Replace(text, "web:1", "web:2", 1))
			})
			e.settled(w)
			assert.Equal(t, "2026-01-02T03:04:05Z", e.restartedAt("web"), "a new manifest does not take it away either")
			e.quiet(a)
			a.stop()
			again := e.start()
			e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) > 0 })
			e.quiet(again)
			e.restart("web", "2026-01-02T03:05:00Z")
			e.quiet(again)
			assert.Equal(t, "2026-01-02T03:05:00Z", e.restartedAt("web"))
			var live appsv1.Deployment
			require.True(t, e.get(&live, e.cluster, "web"))
			assert.Equal(t, "example.com/web:2", live.Spec.Template.Spec.Containers[0].Image)
		})
	}
}

// restart does to a Deployment what kubectl rollout restart does.
func (e *env) restart(name, at string) {
	e.Helper()
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, at)
	require.NoError(e, e.Patch(e.Context(), live,
		client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("kubectl-rollout")))
}

// restartedAt returns when a Deployment was restarted; empty when that was undone.
func (e *env) restartedAt(name string) string {
	e.Helper()
	var live appsv1.Deployment
	require.True(e, e.get(&live, e.cluster, name))
	return live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
}

// upstream writes an object as the agent of OCM leaves it: with its name as manager and its owner.
func (e *env) upstream(applied *workv1.AppliedManifestWork, o *unstructured.Unstructured) *unstructured.Unstructured {
	e.Helper()
	o.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork", Name: applied.Name, UID: applied.UID,
	}})
	require.NoError(e, e.Create(e.Context(), o, client.FieldOwner("work-agent")))
	return o
}
