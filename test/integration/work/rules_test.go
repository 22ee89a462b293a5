package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rulesValid is the condition that tells which condition rules are refused.
const rulesValid = "work.spokelet.io/ConditionRulesValid"

// job is a Job of so many pods at the same time, each to be run once.
func (e *env) job(name string, pods int) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: %s}, spec: {
		parallelism: %d, completions: %d, backoffLimit: 0,
		template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`, name, e.cluster, pods, pods)
}

// endPods lets n pods of a Job end in a phase, as the kubelet that is not there would.
func (e *env) endPods(job string, n int, phase corev1.PodPhase) {
	e.Helper()
	ended := map[string]bool{}
	e.eventually("the pods end", func() bool {
		var pods corev1.PodList
		if e.List(e.Context(), &pods, client.InNamespace(e.cluster), client.MatchingLabels{batchv1.JobNameLabel: job}) != nil {
			return false
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if len(ended) == n || ended[pod.Name] || pod.Status.Phase != corev1.PodPending {
				continue
			}
			pod.Status.Phase = phase
			ended[pod.Name] = e.Status().Update(e.Context(), pod) == nil
		}
		return len(ended) == n
	})
}

// rules makes a configuration with condition rules for objects in the namespace of the test.
func (e *env) rules(group, resource, name string, rules ...workv1.ConditionRule) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Namespace: e.cluster, Name: name,
		},
		ConditionRules: rules,
	}
}

// celRule is a condition rule of expressions.
func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions,
	}
}

// completeRule is the well-known condition rule.
func completeRule() workv1.ConditionRule {
	return workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestComplete}
}

// says waits until a condition of a manifest has a status and a message.
func (e *env) says(w *workv1.ManifestWork, ordinal int, kind string, status metav1.ConditionStatus, message string) {
	e.Helper()
	e.eventually(fmt.Sprintf("%s of manifest %d is %s", kind, ordinal, status), func() bool {
		got := manifestCondition(e.now(w), ordinal, kind)
		return got.Status == status && got.ObservedGeneration == w.Generation && strings.Contains(got.Message, message)
	})
	assert.Equal(e, workv1.ConditionRuleEvaluated, manifestCondition(w, ordinal, kind).Reason)
}

// now reads a work.
func (e *env) now(w *workv1.ManifestWork) *workv1.ManifestWork {
	e.Helper()
	require.NoError(e, e.Get(e.Context(), client.ObjectKeyFromObject(w), w))
	return w
}

// setData writes the data of a ConfigMap by hand.
func (e *env) setData(name string, data map[string]string) {
	e.Helper()
	e.eventually("the hand edit is taken", func() bool {
		var cm corev1.ConfigMap
		if !e.get(&cm, e.cluster, name) {
			return false
		}
		cm.Data = data
		return e.Update(e.Context(), &cm) == nil
	})
}

// Shows: work/rules-job
func TestJobComplete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.job("good", 1), e.job("bad", 1))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.rules("batch", "jobs", "*", completeRule())}
	e.create(w)
	e.settled(w)
	e.says(w, 0, workv1.ManifestComplete, metav1.ConditionFalse, "Job is not finished")
	e.endPods("good", 1, corev1.PodSucceeded)
	e.says(w, 0, workv1.ManifestComplete, metav1.ConditionTrue, "Job is finished")
	assert.Equal(t, metav1.ConditionFalse, manifestCondition(w, 1, workv1.ManifestComplete).Status)
	assert.Equal(t, "Aggregated from 2 manifest conditions", e.is(w, workv1.WorkComplete, metav1.ConditionFalse).Message)
	e.endPods("bad", 1, corev1.PodFailed)
	e.says(w, 1, workv1.ManifestComplete, metav1.ConditionTrue, "Job is finished")
	complete := e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	assert.Equal(t, "ConditionRulesAggregated", complete.Reason)

	e.quiet(a)
	require.NoError(t, e.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "good"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	a.stop()
	a = e.start()
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, e.manifests(e.configMap("more", nil))...)
	})
	e.eventually("a new manifest is applied even so", func() bool { return e.get(&corev1.ConfigMap{}, e.cluster, "more") })
	e.quiet(a)
	assert.False(t, e.get(&batchv1.Job{}, e.cluster, "good"), "a Job that is done is not run again when it was cleared away")
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(e.now(w), 0, workv1.ManifestComplete).Status)
}

// Shows: work/rules-cel
func TestRuleOfExpressions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	rule := celRule("OneActive", "object.status.active == 1")
	rule.MessageExpression = "result ? 'One pod is active' : 'There is not only one pod active'"
	w := e.work("w", e.job("j", 3))
	config := e.rules("batch", "jobs", "*j", rule)
	config.UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config}
	e.create(w)
	e.settled(w)
	e.says(w, 0, "OneActive", metav1.ConditionFalse, "There is not only one pod active")
	e.endPods("j", 2, corev1.PodSucceeded)
	e.says(w, 0, "OneActive", metav1.ConditionTrue, "One pod is active")
	assert.Equal(t, "One pod is active", e.is(w, "OneActive", metav1.ConditionTrue).Message)
	n, m := e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)))
	assert.Empty(t, a.hub.since(m), "rest is rest, rules or not")

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs[0].ConditionRules = nil })
	e.settled(w)
	assert.Empty(t, manifestCondition(w, 0, "OneActive").Type, "a rule that is gone leaves nothing")
	assert.Nil(t, meta.FindStatusCondition(w.Status.Conditions, "OneActive"))
}

// Shows: work/rules-missing, work/status-fits, work/rules-reserved
func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.job("j", 1), e.configMap("a", map[string]string{"k": "v"}))
	notKnown := workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: "NotWellKnown"}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("batch", "jobs", "j", notKnown),
		e.rules("", "configmaps", "a", celRule("Applied", "false"), celRule("Available", "false"),
			celRule("StatusFeedbackSynced", "false"), celRule("no type", "true"), celRule("Good", "object.data.k == 'v'")),
	}
	e.create(w)
	e.settled(w)
	e.says(w, 1, "Good", metav1.ConditionTrue, "Manifest is Good")
	assert.Empty(t, manifestCondition(w, 0, "NotWellKnown").Type)
	assert.Contains(t, manifestCondition(w, 0, rulesValid).Message, `Job has no well-known condition "NotWellKnown"`)
	for _, kind := range []string{workv1.ManifestApplied, workv1.ManifestAvailable, "StatusFeedbackSynced"} {
		assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 1, kind).Status, "%s is ours", kind)
	}
	told := manifestCondition(w, 1, rulesValid)
	assert.Equal(t, workv1.ConditionRuleInvalid, told.Reason)
	assert.Contains(t, told.Message, `"no type" is no type that the API takes`)
	e.is(w, rulesValid, metav1.ConditionFalse)
	n, m := e.quiet(a)
	again, hub := e.quiet(a)
	assert.Equal(t, [2]int{n, m}, [2]int{again, hub}, "and it does not go round in circles")

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].ConditionRules[0] = completeRule()
		w.Spec.ManifestConfigs[1].ConditionRules = w.Spec.ManifestConfigs[1].ConditionRules[4:]
	})
	e.says(w, 0, workv1.ManifestComplete, metav1.ConditionFalse, "Job is not finished")
	assert.Nil(t, meta.FindStatusCondition(w.Status.Conditions, rulesValid))
}

// Shows: work/rules-pattern
func TestRulesAreChosenByPattern(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a1", nil), e.configMap("a2", nil), e.configMap("b", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("", "configmaps", "a2", celRule("First", "true")),
		e.rules("", "configmaps", "a*", celRule("Second", "object.metadata.name.startsWith('a')")),
	}
	e.create(w)
	e.says(w, 1, "First", metav1.ConditionTrue, "Manifest is First")
	e.says(w, 0, "Second", metav1.ConditionTrue, "Manifest is Second")
	assert.Empty(t, manifestCondition(w, 1, "Second").Type, "the first entry that matches wins")
	for _, kind := range []string{"First", "Second"} {
		assert.Empty(t, manifestCondition(w, 2, kind).Type)
		assert.Equal(t, "Manifest is "+kind, e.is(w, kind, metav1.ConditionTrue).Message, "of the manifests that have it")
	}
}

// Shows: work/complete, work/complete-rechecked
func TestComplete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"complete": "no"}), e.configMap("b", map[string]string{"k": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("", "configmaps", "a", celRule(workv1.ManifestComplete, "object.data.complete == 'yes'")),
	}
	e.create(w)
	e.settled(w)
	e.is(w, workv1.WorkComplete, metav1.ConditionFalse)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(
			e.configMap("a", map[string]string{"complete": "yes"}), e.configMap("b", map[string]string{"k": "1"}))
	})
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.settled(w)

	n, _ := e.quiet(a)
	e.setData("b", map[string]string{"k": "hacked"})
	e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)), "a complete work is not applied any more")

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(
			e.configMap("a", map[string]string{"complete": "yes", "new": "x"}), e.configMap("b", map[string]string{"k": "2"}))
	})
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.dataIs("b", map[string]string{"k": "2"}, "a new generation is applied where nothing is complete")
	e.dataIs("a", map[string]string{"complete": "yes"}, "what is complete is not")
	assert.Equal(t, w.Generation-1, manifestCondition(e.now(w), 0, workv1.ManifestApplied).ObservedGeneration, "and says so")
	assert.Equal(t, w.Generation, manifestCondition(w, 1, workv1.ManifestApplied).ObservedGeneration)

	e.setData("a", map[string]string{"complete": "not"})
	e.dataIs("a", map[string]string{"complete": "yes", "new": "x"}, "what is not complete any more is applied again")
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.eventually("and says so", func() bool {
		return manifestCondition(e.now(w), 0, workv1.ManifestApplied).ObservedGeneration == w.Generation
	})

	e.quiet(a)
	e.setData("b", map[string]string{"k": "hacked again"})
	e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	e.dataIs("b", map[string]string{"k": "2"}, "without its rule the work is applied again")
	e.settled(w)
	assert.Nil(t, meta.FindStatusCondition(w.Status.Conditions, workv1.WorkComplete))
}

// Shows: work/complete-rechecked
func TestCompleteFlipsBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.job("j", 1), e.configMap("b", map[string]string{"k": "1"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("batch", "jobs", "j", celRule(workv1.ManifestComplete, "!has(object.metadata.labels) || !('open' in object.metadata.labels)")),
	}
	e.create(w)
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.quiet(a)
	e.setData("b", map[string]string{"k": "hacked"})
	e.quiet(a)
	e.dataIs("b", map[string]string{"k": "hacked"}, "the work is complete")
	a.stop()

	a = e.start()
	e.quiet(a)
	var job batchv1.Job
	require.True(t, e.get(&job, e.cluster, "j"))
	before := job.DeepCopy()
	job.Labels = map[string]string{"open": "1"}
	require.NoError(t, e.Patch(t.Context(), &job, client.MergeFrom(before)))
	e.is(w, workv1.WorkComplete, metav1.ConditionFalse)
	e.dataIs("b", map[string]string{"k": "1"}, "the whole work is applied again")
	n, m := e.quiet(a)
	assert.Empty(t, a.spoke.since(n))
	assert.Empty(t, a.hub.since(m))
}

// dataIs waits until a ConfigMap has the data.
func (e *env) dataIs(name string, data map[string]string, why string) {
	e.Helper()
	e.eventually(why, func() bool {
		var cm corev1.ConfigMap
		return e.get(&cm, e.cluster, name) && fmt.Sprint(cm.Data) == fmt.Sprint(data)
	})
}
