package work_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

const feedbackSynced = "StatusFeedbackSynced"

// deployment is a Deployment of so many pods.
func (e *env) deployment(name string, pods int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: %d,
		selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}},
		spec: {containers: [{name: c, image: i}]}}}}`, name, e.cluster, pods, name, name)
}

// readyPods makes n pods of a Deployment ready, as the kubelet that is not there would.
func (e *env) readyPods(app string, n int) {
	e.Helper()
	ready := map[string]bool{}
	e.eventually("the pods are ready", func() bool {
		var pods corev1.PodList
		if e.List(e.Context(), &pods, client.InNamespace(e.cluster), client.MatchingLabels{"app": app}) != nil {
			return false
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if len(ready) == n || ready[pod.Name] {
				continue
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now()),
			}}
			if e.Status().Update(e.Context(), pod) == nil {
				ready[pod.Name] = true
			}
		}
		return len(ready) == n
	})
}

// feedback makes a configuration with feedback rules for objects in the namespace of the test.
func (e *env) feedback(group, resource, name string, rules ...workv1.FeedbackRule) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Namespace: e.cluster, Name: name,
		},
		FeedbackRules: rules,
	}
}

// wellKnownStatus is the rule of well-known values.
func wellKnownStatus() workv1.FeedbackRule {
	return workv1.FeedbackRule{Type: workv1.WellKnownStatusType}
}

// jsonPaths is a rule of pairs of names and paths.
func jsonPaths(pairs ...string) workv1.FeedbackRule {
	rule := workv1.FeedbackRule{Type: workv1.JSONPathsType}
	for i := 0; i < len(pairs); i += 2 {
		rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: pairs[i], Path: pairs[i+1]})
	}
	return rule
}

// values lists the feedback values of a manifest as "name=JSON".
func values(w *workv1.ManifestWork, ordinal int) []string {
	list := []string{}
	if ordinal >= len(w.Status.ResourceStatus.Manifests) {
		return list
	}
	for _, value := range w.Status.ResourceStatus.Manifests[ordinal].StatusFeedbacks.Values {
		var text any = value.Value.Integer
		switch value.Value.Type {
		case workv1.String:
			text = value.Value.String
		case workv1.Boolean:
			text = value.Value.Boolean
		case workv1.JsonRaw:
			list = append(list, value.Name+"=raw"+*value.Value.JsonRaw)
			continue
		case workv1.Integer:
		}
		raw, _ := json.Marshal(text)
		list = append(list, value.Name+"="+string(raw))
	}
	return list
}

// reports waits until a manifest has exactly the values, and returns its condition of feedback.
func (e *env) reports(w *workv1.ManifestWork, ordinal int, want ...string) metav1.Condition {
	e.Helper()
	suite.Eventually(e, suite.True(fmt.Sprintf("manifest %d should report %v", ordinal, want), func() bool {
		return slices.Equal(values(e.now(w), ordinal), want) && manifestCondition(w, ordinal, feedbackSynced).Type != ""
	}))
	return manifestCondition(w, ordinal, feedbackSynced)
}

// Shows: work/feedback-deployment
func TestFeedbackOfDeployments(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.deployment("known", 2), e.deployment("paths", 1), e.deployment("none", 1), e.deployment("lists", 1))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("apps", "deployments", "known", wellKnownStatus()),
		e.feedback("apps", "deployments", "paths", jsonPaths("replica", ".spec.replicas", "paused", ".spec.paused",
			"name", ".metadata.name", "nothing", ".status.nothing")),
		e.feedback("apps", "deployments", "lists", jsonPaths("conditions", ".status.conditions", "replicas", ".spec.replicas")),
	}
	e.create(w)
	e.settled(w)
	e.readyPods("known", 1)
	synced := e.reports(w, 0, "ReadyReplicas=1", "Replicas=2", "AvailableReplicas=1")
	assert.Equal(t, metav1.ConditionTrue, synced.Status)
	assert.Equal(t, "StatusFeedbackSynced", synced.Reason)
	assert.Equal(t, "StatusFeedbackSynced", e.reports(w, 1, "replica=1", `name="paths"`).Reason)
	none := e.reports(w, 2)
	assert.Equal(t, metav1.ConditionTrue, none.Status)
	assert.Equal(t, "NoStatusFeedbackSynced", none.Reason)
	lists := e.reports(w, 3, "replicas=1")
	assert.Equal(t, metav1.ConditionFalse, lists.Status)
	assert.Equal(t, "StatusFeedbackSyncFailed", lists.Reason)
	assert.True(t, strings.HasPrefix(lists.Message, "Sync status feedback failed with error "), lists.Message)

	e.readyPods("known", 2)
	moved := e.reports(w, 0, "ReadyReplicas=2", "Replicas=2", "AvailableReplicas=2")
	assert.False(t, moved.LastTransitionTime.Before(&synced.LastTransitionTime), "new values move the time")
	n, m := e.quiet(a)
	assert.Empty(t, a.spoke.since(n))
	assert.Empty(t, a.hub.since(m))
}

// Shows: work/feedback-raw, work/status-fits
func TestRawFeedback(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.rawFeedback = true
	e.start()
	long := map[string]string{}
	for i := range 30 {
		long[fmt.Sprintf("k%02d", i)] = strings.Repeat("x", 50)
	}
	w := e.work("w", e.deployment("d", 1), e.configMap("long", long), e.configMap("short", map[string]string{"b": "1", "a": "2"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("apps", "deployments", "d", jsonPaths("names", ".spec.template.spec.containers[*].name",
			"filtered", `.spec.template.spec.containers[?(@.name=="c")].image`, "selector", ".spec.selector")),
		e.feedback("", "configmaps", "*", jsonPaths("data", ".data", "name", ".metadata.name")),
	}
	e.create(w)
	e.settled(w)
	e.reports(w, 0, `names="c"`, `filtered="i"`, `selector=raw{"matchLabels":{"app":"d"}}`)
	tooLong := e.reports(w, 1, `name="long"`)
	assert.Equal(t, metav1.ConditionFalse, tooLong.Status, "the API would refuse it, so it is left out")
	assert.Contains(t, tooLong.Message, "limit of 1024")
	assert.Equal(t, metav1.ConditionTrue, e.reports(w, 2, `data=raw{"a":"2","b":"1"}`, `name="short"`).Status)
}

// Shows: work/feedback-pattern
func TestFeedbackIsChosenByPattern(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	set := fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds, namespace: %s}, spec: {
		selector: {matchLabels: {app: ds}}, template: {metadata: {labels: {app: ds}},
		spec: {containers: [{name: c, image: i}]}}}}`, e.cluster)
	w := e.work("w", set, e.deployment("one", 1), e.deployment("two", 1))
	first := e.feedback("apps", "deployments", "*", jsonPaths("name", ".metadata.name"))
	first.ResourceIdentifier.Namespace = "*"
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		first,
		e.feedback("apps", "deployments", "two", wellKnownStatus()),
		e.feedback("apps", "daemonsets", "ds", wellKnownStatus()),
	}
	e.create(w)
	e.settled(w)
	e.reports(w, 0, "NumberReady=0", "DesiredNumberScheduled=0")
	e.reports(w, 1, `name="one"`)
	e.reports(w, 2, `name="two"`)
}

// Shows: work/feedback-watched
func TestFeedbackIsWatchedWhateverIsAsked(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	other := e.cluster + "-ns"
	namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", other)
	w := e.work("w", e.deployment("d", 1), namespace, e.deployment("polled", 1))
	watched := e.feedback("apps", "deployments", "d", wellKnownStatus())
	watched.FeedbackScrapeType = workv1.FeedbackWatchType
	phase := e.feedback("", "namespaces", other, jsonPaths("phase", ".status.phase", "tag", ".metadata.labels.tag"))
	phase.ResourceIdentifier.Namespace, phase.FeedbackScrapeType = "", workv1.FeedbackWatchType
	polled := e.feedback("apps", "deployments", "polled", wellKnownStatus())
	polled.FeedbackScrapeType = workv1.FeedbackPollType
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{watched, phase, polled}
	e.create(w)
	e.settled(w)
	e.reports(w, 1, `phase="Active"`)
	for i, app := range []string{"d", "polled"} {
		e.readyPods(app, 1)
		e.reports(w, 2*i, "ReadyReplicas=1", "Replicas=1", "AvailableReplicas=1")
	}
	var ns corev1.Namespace
	require.True(t, e.get(&ns, "", other))
	before := ns.DeepCopy()
	ns.Labels["tag"] = "x"
	require.NoError(t, e.Patch(t.Context(), &ns, client.MergeFrom(before)))
	e.reports(w, 1, `phase="Active"`, `tag="x"`)
}

// Shows: work/feedback-degrades-alone, work/status-fits
func TestFeedbackDegradesAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.deployment("d", 1), e.configMap("a", map[string]string{"k": "v"}))
	read := e.feedback("", "configmaps", "a", jsonPaths("k", ".data.k"))
	read.UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("apps", "deployments", "d", wellKnownStatus(), jsonPaths("Replicas", ".metadata.name", "own", ".metadata.name"),
			jsonPaths("own", ".spec.replicas")),
		read,
	}
	cm := e.configMap("a", map[string]string{"k": "live"})
	e.create(cm)
	e.create(w)
	e.settled(w)
	e.reports(w, 1, `k="live"`)
	twice := e.reports(w, 0, "Replicas=1", `own="d"`)
	assert.Equal(t, metav1.ConditionFalse, twice.Status)
	assert.Contains(t, twice.Message, `value "Replicas": another rule gives a value of this name already`)

	require.NoError(t, e.Delete(t.Context(), cm))
	gone := e.reports(w, 1)
	assert.Equal(t, metav1.ConditionFalse, gone.Status, "what is gone has no values and nothing in sync")
	e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	var d appsv1.Deployment
	require.True(t, e.get(&d, e.cluster, "d"), "and the rest is not touched")
}

// TestWhatNobodyReadsIsNotRead changes the status of objects: only where a rule reads it that costs anything.
func TestWhatNobodyReadsIsNotRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.deployment("plain", 1), e.deployment("read", 1), e.deployment("ruled", 1))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("apps", "deployments", "read", wellKnownStatus()),
		e.rules("apps", "deployments", "ruled", celRule("Ready", "object.status.?readyReplicas.orValue(0) == 1")),
	}
	e.create(w)
	e.settled(w)
	e.says(w, 2, "Ready", metav1.ConditionFalse, "Manifest is not Ready")
	n, _ := e.quiet(a)
	for _, app := range []string{"plain", "read", "ruled"} {
		e.readyPods(app, 1)
	}
	e.reports(w, 1, "ReadyReplicas=1", "Replicas=1", "AvailableReplicas=1")
	e.says(w, 2, "Ready", metav1.ConditionTrue, "Manifest is Ready")
	e.quiet(a)
	sent := a.spoke.since(n)
	assert.Empty(t, writes(sent))
	assert.NotContains(t, strings.Join(sent, "\n"), "deployments/plain")
	assert.LessOrEqual(t, len(sent), 8, "a few reads for a few changes")
}
