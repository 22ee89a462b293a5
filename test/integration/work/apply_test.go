package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// strategy makes a configuration of ConfigMaps in the namespace of the test.
func (e *env) strategy(name string, s workv1.UpdateStrategy) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: e.cluster, Name: name},
		UpdateStrategy:     &s,
	}
}

// Shows: work/strategies
func TestCreateOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}),
	}
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "2"}))
	})
	e.settled(w)
	e.quiet(a)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, "1", cm.Data["k"])
	require.NoError(t, e.Delete(t.Context(), &cm))
	e.eventually("it is made again as the manifest says now", func() bool {
		return e.get(&cm, e.cluster, "a") && cm.Data["k"] == "2"
	})
}

// Shows: work/read-only
func TestReadOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1"}))
	config := e.strategy("a", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly})
	config.FeedbackRules = []workv1.FeedbackRule{{
		Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "k", Path: ".data.k"}},
	}}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config}
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
	e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	cm := e.configMap("a", map[string]string{"k": "live"})
	e.create(cm)
	e.is(w, workv1.WorkAvailable, metav1.ConditionTrue)
	value := func() string {
		e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
		values := w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
		if len(values) == 0 {
			return ""
		}
		return ptr.Deref(values[0].Value.String, "")
	}
	e.eventually("the value is told", func() bool { return value() == "live" })
	cm.Data["k"] = "newer"
	require.NoError(t, e.Update(t.Context(), cm))
	e.eventually("the newer value is told", func() bool { return value() == "newer" })
	require.NoError(t, e.Delete(t.Context(), cm))
	e.eventually("the value of a vanished object is dropped", func() bool { return value() == "" })
	e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	assert.NotContains(t, strings.Join(writes(a.spoke.since(0)), "\n"), "configmaps", "nothing is written to the object")
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	foreign := e.configMap("a", map[string]string{"k": "theirs"})
	e.create(foreign)
	apply := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
	w := e.work("w", e.configMap("a", map[string]string{"k": "ours"}), e.configMap("b", map[string]string{"k": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("*", apply)}
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	failed := manifestCondition(w, 0, workv1.ManifestApplied)
	assert.Equal(t, workv1.AppliedManifestFailed, failed.Reason)
	assert.Contains(t, failed.Message, "conflict")
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 1, workv1.ManifestApplied).Status)
	n, _ := e.quiet(a)
	assert.Empty(t, a.spoke.since(n), "a conflict is not tried again by itself")

	foreign.Data = nil
	require.NoError(t, e.Update(t.Context(), foreign))
	e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, "ours", cm.Data["k"])
	assert.Len(t, cm.OwnerReferences, 1)
}

func TestAnExecutorWithoutAnyRightIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	other := e.work("executor", e.configMap("c", nil))
	other.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "default", Name: "default"},
	}}
	e.create(other)
	e.is(other, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Contains(t, manifestCondition(other, 0, workv1.ManifestApplied).Message, "not allowed to apply the resource")
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "c"))
}

// Shows: work/bad-manifest-alone
func TestBadManifestsDoNotStopTheOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w",
		"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x-}}",
		"{apiVersion: nowhere.example/v1, kind: Missing, metadata: {name: x, namespace: default}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere}}",
		fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: invalid, namespace: %s}, data: {a b: x}}", e.cluster),
		e.configMap("good", nil), e.configMap("dropped", nil),
	)
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	message := func(i int) string { return manifestCondition(w, i, workv1.ManifestApplied).Message }
	assert.Contains(t, message(0), "generateName")
	assert.Equal(t, workv1.ManifestResourceMeta{}, w.Status.ResourceStatus.Manifests[0].ResourceMeta)
	assert.Equal(t, "IncompleteResourceMeta", manifestCondition(w, 0, workv1.ManifestAvailable).Reason)
	assert.Equal(t, `Failed to apply manifest: the server doesn't have a resource type "Missing"`, message(1))
	assert.Empty(t, w.Status.ResourceStatus.Manifests[1].ResourceMeta.Resource)
	assert.Contains(t, message(2), "no metadata.namespace")
	assert.Contains(t, message(3), "Invalid value")
	assert.Equal(t, "Apply manifest complete", message(4))
	assert.Equal(t, []string{"configmaps/dropped", "configmaps/good"}, appliedNames(e.applied()))
	available := e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	assert.Regexp(t, `^1 of 6 resources are not available: manifest \d \(`, available.Message)

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests[1:4:4], e.manifests(e.configMap("good", nil))...)
	})
	e.eventually("what was dropped is pruned although others fail", func() bool {
		return !e.get(&corev1.ConfigMap{}, e.cluster, "dropped")
	})
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "good"))
	e.quiet(a)
}

const widgets = `
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
`

// allowWidgets lets agents apply widgets of the test, in the way that users are told to.
func (e *env) allowWidgets() {
	e.Helper()
	e.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: e.cluster, Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{e.cluster + ".example"}, Resources: []string{"widgets"}, Verbs: []string{"*"},
		}},
	})
}

// Shows: work/definition-and-object
func TestDefinitionAndItsObjectInOneWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	a := e.start()
	widget := "{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s}, spec: {size: 1}}"
	w := e.work("w", fmt.Sprintf(widget, e.cluster), fmt.Sprintf(widgets, e.cluster))
	e.create(w)
	e.settled(w)
	assert.Equal(t, "widgets", w.Status.ResourceStatus.Manifests[0].ResourceMeta.Resource)
	e.eventually("both are listed", func() bool {
		return assert.ObjectsAreEqual([]string{"customresourcedefinitions/widgets." + e.cluster + ".example", "widgets/x"},
			appliedNames(e.applied()))
	})
	n, _ := e.quiet(a)

	live := e.unstructuredOf(widget, e.cluster)
	require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	live.Object["spec"] = map[string]any{"size": int64(2), "extra": "x"}
	require.NoError(t, e.Update(t.Context(), live))
	e.eventually("a field that was added is removed", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(live), live) == nil &&
			assert.ObjectsAreEqual(map[string]any{"size": int64(1)}, live.Object["spec"])
	})
	assert.NotEmpty(t, a.spoke.since(n))

	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

func TestObjectWaitsForADefinitionFromElsewhere(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	e.start()
	w := e.work("w", fmt.Sprintf(
		"{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s}}", e.cluster))
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	e.create(e.unstructuredOf(widgets, e.cluster))
	e.settled(w)
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// Shows: work/server-defaults
func TestServerDefaultsAreNotRewritten(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: %[1]s}, spec: {template: {spec: {
		restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}}}}`
	service := `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %[1]s},
		spec: {selector: {app: web}, ports: [{port: 80}]}}`
	w := e.work("w", fmt.Sprintf(deployment, e.cluster), fmt.Sprintf(job, e.cluster), fmt.Sprintf(service, e.cluster))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "apps", Resource: "deployments", Namespace: e.cluster, Name: "web",
		},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
	}}
	e.create(w)
	e.settled(w)
	e.eventually("feedback is told", func() bool {
		e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
		values := w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
		return len(values) == 1 && values[0].Name == "Replicas" && ptr.Deref(values[0].Value.Integer, 0) == 1
	})
	assert.Equal(t, "StatusFeedbackSynced", manifestCondition(w, 0, "StatusFeedbackSynced").Reason)
	e.quiet(a)
	var live appsv1.Deployment
	require.True(t, e.get(&live, e.cluster, "web"))
	assert.Equal(t, int64(1), live.Generation)
	for _, line := range a.spoke.since(0) {
		if strings.HasPrefix(line, "PUT ") {
			assert.Contains(t, line, "/appliedmanifestworks/", "creating was enough, only the list is put")
		}
	}
	a.stop()

	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) >= 3 })
	e.quiet(again)
	assert.Empty(t, writes(again.spoke.since(0)), "a restart writes nothing")
	assert.Empty(t, writes(again.hub.since(0)))

	live.Spec.Template.Spec.Containers[0].Image = "example.com/web:hacked"
	live.Spec.Template.Spec.NodeSelector = map[string]string{"added": "here"}
	require.NoError(t, e.Patch(t.Context(), &live, client.MergeFrom(func() *appsv1.Deployment {
		var base appsv1.Deployment
		e.get(&base, e.cluster, "web")
		return &base
	}())))
	e.eventually("edits of the template are undone", func() bool {
		return e.get(&live, e.cluster, "web") && live.Generation > 2 &&
			live.Spec.Template.Spec.Containers[0].Image == "example.com/web:1" &&
			len(live.Spec.Template.Spec.NodeSelector) == 0
	})
}

// roleRefRefused holds what all versions of Kubernetes say of a changed roleRef; 1.37 continues with other words.
const roleRefRefused = "roleRef: Invalid value"

func TestRefusedRoleRefIsTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	binding := func(role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "b"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "u"}},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: role},
		}
	}
	w := e.work("w", binding("one"))
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(binding("two")) })
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	e.is(w, workv1.WorkAvailable, metav1.ConditionTrue)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, roleRefRefused)
}

func TestSecretTypeIsChangedByMakingItAnew(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, type: %s, stringData: {k: v}}"
	w := e.work("w", fmt.Sprintf(secret, e.cluster, "Opaque"))
	e.create(w)
	e.settled(w)
	var live corev1.Secret
	require.True(t, e.get(&live, e.cluster, "s"))
	was := live.UID
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(secret, e.cluster, "example.com/other"))
	})
	e.settled(w)
	require.True(t, e.get(&live, e.cluster, "s"))
	assert.NotEqual(t, was, live.UID)
	assert.Equal(t, corev1.SecretType("example.com/other"), live.Type)
	assert.Equal(t, "v", string(live.Data["k"]))
}

func TestAWorkMayBeCompleteAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: e.cluster, Name: "a"},
		ConditionRules: []workv1.ConditionRule{{
			Condition: "Complete", Type: workv1.CelConditionExpressionsType, CelExpressions: []string{"true"},
		}},
	}}
	e.create(w)
	e.settled(w)
	rule := manifestCondition(w, 0, "Complete")
	assert.Equal(t, metav1.ConditionTrue, rule.Status)
	assert.Equal(t, workv1.ConditionRuleEvaluated, rule.Reason)
	assert.Equal(t, "ConditionRulesAggregated", e.is(w, "Complete", metav1.ConditionTrue).Reason)
}

// TestCompleteManifestIsNotRunAgain takes over a work of which another agent saw a manifest complete.
func TestCompleteManifestIsNotRunAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.start()
	w := e.work("w", e.configMap("a", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: e.cluster, Name: "a"},
		ConditionRules: []workv1.ConditionRule{{
			Condition: "Complete", Type: workv1.CelConditionExpressionsType, CelExpressions: []string{"true"},
		}},
	}}
	e.create(w)
	e.settled(w)
	first.stop()
	require.True(t, e.get(w, e.cluster, "w")) // as the agent left it
	for _, list := range []*[]metav1.Condition{
		&w.Status.Conditions, &w.Status.ResourceStatus.Manifests[0].Conditions,
	} {
		for i := range *list {
			if c := &(*list)[i]; c.Type == "Complete" {
				c.Status, c.Reason = metav1.ConditionTrue, workv1.ConditionRuleEvaluated
			}
		}
	}
	require.NoError(t, e.Status().Update(t.Context(), w))
	require.NoError(t, e.Delete(t.Context(), e.configMap("a", nil)))

	second := e.start()
	e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	e.quiet(second)
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 0, "Complete").Status)

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	e.eventually("without the rule it is applied again", func() bool {
		return e.get(&corev1.ConfigMap{}, e.cluster, "a")
	})
}
