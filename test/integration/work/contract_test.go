package work_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownersOf lists the works that own a ConfigMap of the test.
func (e *env) ownersOf(name string) []string {
	e.Helper()
	var cm corev1.ConfigMap
	require.True(e, e.get(&cm, e.cluster, name), "%s should be there", name)
	list := []string{}
	for _, ref := range cm.OwnerReferences {
		list = append(list, strings.TrimPrefix(ref.Name, e.settings.hubHash+"-"))
	}
	return list
}

// uidOf is the UID of a ConfigMap of the test.
func (e *env) uidOf(name string) types.UID {
	e.Helper()
	var cm corev1.ConfigMap
	require.True(e, e.get(&cm, e.cluster, name), "%s should be there", name)
	return cm.UID
}

// trackedBy lists the applied resources of a work.
func (e *env) trackedBy(work string) []string {
	e.Helper()
	a := &workv1.AppliedManifestWork{}
	require.True(e, e.get(a, "", e.settings.hubHash+"-"+work))
	return appliedNames(a)
}

// Shows: work/several-manifests
func TestOneManifestTakesThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", nil), e.configMap("b", nil), e.configMap("c", nil))
	e.create(w)
	e.settled(w)
	was := e.uidOf("a")
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("d", nil), e.configMap("a", nil), e.configMap("c", nil))
	})
	e.settled(w)
	e.eventually("what was replaced is gone", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "b") })
	e.eventually("the list follows", func() bool {
		return slices.Equal([]string{"configmaps/a", "configmaps/c", "configmaps/d"}, e.trackedBy("w"))
	})
	for i, name := range []string{"d", "a", "c"} {
		assert.Equal(t, name, w.Status.ResourceStatus.Manifests[i].ResourceMeta.Name)
		assert.EqualValues(t, i, w.Status.ResourceStatus.Manifests[i].ResourceMeta.Ordinal)
	}
	assert.Equal(t, was, e.uidOf("a"), "what moved in the list stays as it is")
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	for _, name := range []string{"a", "c", "d"} {
		assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, name))
	}
}

// anotherSecond waits until conditions that change now have a later time.
func (e *env) anotherSecond() {
	e.Helper()
	now := time.Now().Truncate(time.Second)
	e.eventually("the clock goes on", func() bool { return time.Now().Truncate(time.Second).After(now) })
}

// TestTimesAndGenerationsOfConditions edits a work, an object and a value that is read of it, and looks at what moves.
// Shows: work/times-and-generations
func TestTimesAndGenerationsOfConditions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1"}), e.configMap("b", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("", "configmaps", "a", jsonPaths("k", ".data.k", "theirs", ".metadata.labels.theirs")),
	}
	e.create(w)
	e.settled(w)
	e.reports(w, 0, `k="1"`)
	e.quiet(a)
	first := e.now(w).DeepCopy()
	e.anotherSecond()

	// A hand edit that is undone moves nothing.
	e.setData("b", map[string]string{"hacked": "x"})
	e.dataIs("b", nil, "drift is repaired")
	e.quiet(a)
	assert.Equal(t, first.Status, e.now(w).Status)

	// A value that changes moves the time of its condition and of no other.
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	before := cm.DeepCopy()
	cm.Labels = map[string]string{"theirs": "x"}
	require.NoError(t, e.Patch(t.Context(), &cm, client.MergeFrom(before)))
	synced := e.reports(w, 0, `k="1"`, `theirs="x"`)
	old := manifestCondition(first, 0, feedbackSynced)
	assert.True(t, old.LastTransitionTime.Before(&synced.LastTransitionTime))
	for i := range 2 {
		for _, kind := range []string{workv1.ManifestApplied, workv1.ManifestAvailable} {
			assert.Equal(t, manifestCondition(first, i, kind), manifestCondition(w, i, kind))
		}
	}
	assert.Equal(t, manifestCondition(first, 1, feedbackSynced), manifestCondition(w, 1, feedbackSynced))
	assert.Equal(t, first.Status.Conditions, w.Status.Conditions)

	// A new generation is told of by Applied of each manifest, whose time begins again, and by the work, where it stays.
	e.anotherSecond()
	second := e.now(w).DeepCopy()
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "2"}), e.configMap("b", nil))
	})
	e.settled(w)
	e.reports(w, 0, `k="2"`, `theirs="x"`)
	assert.Equal(t, second.Generation+1, w.Generation)
	for i := range 2 {
		then, now := manifestCondition(second, i, workv1.ManifestApplied), manifestCondition(w, i, workv1.ManifestApplied)
		assert.Equal(t, w.Generation, now.ObservedGeneration)
		assert.True(t, then.LastTransitionTime.Before(&now.LastTransitionTime))
		assert.Equal(t, manifestCondition(second, i, workv1.ManifestAvailable), manifestCondition(w, i, workv1.ManifestAvailable))
	}
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		then, now := meta.FindStatusCondition(second.Status.Conditions, kind), meta.FindStatusCondition(w.Status.Conditions, kind)
		assert.Equal(t, w.Generation, now.ObservedGeneration)
		assert.Equal(t, then.LastTransitionTime, now.LastTransitionTime)
	}
}

// TestASharedObjectOutlivesTheManifestOfOneWork drops a manifest from one of two works that have it.
// Shows: work/shared-object
func TestASharedObjectOutlivesTheManifestOfOneWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	one, two := e.work("one", e.configMap("a", nil), e.configMap("b", nil)), e.work("two", e.configMap("a", nil))
	for _, w := range []*workv1.ManifestWork{one, two} {
		e.create(w)
		e.settled(w)
	}
	was := e.uidOf("a")
	assert.ElementsMatch(t, []string{"one", "two"}, e.ownersOf("a"))
	e.edit(one, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(e.configMap("b", nil)) })
	e.settled(one)
	e.eventually("it is no longer listed for the one", func() bool {
		return slices.Equal([]string{"configmaps/b"}, e.trackedBy("one"))
	})
	e.quiet(a)
	assert.Equal(t, was, e.uidOf("a"))
	assert.Equal(t, []string{"two"}, e.ownersOf("a"))
	assert.Equal(t, []string{"configmaps/a"}, e.trackedBy("two"))
	require.NoError(t, e.Delete(t.Context(), two))
	e.gone("two")
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// TestOrphansOutliveTheirManifestAndTheirWork has works that leave everything, and one object, behind: both when a
// manifest leaves the work and when the work goes.
// Shows: work/orphan
func TestOrphansOutliveTheirManifestAndTheirWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	for name, option := range map[string]*workv1.DeleteOption{
		"whole": {PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
		"selective": {
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{
				{Resource: "configmaps", Namespace: e.cluster, Name: "selective-dropped"},
				{Resource: "configmaps", Namespace: e.cluster, Name: "selective-kept"},
			}},
		},
	} {
		w := e.work(name, e.configMap(name+"-dropped", nil), e.configMap(name+"-kept", nil), e.configMap(name+"-other", nil))
		w.Spec.DeleteOption = option
		e.create(w)
		e.settled(w)
		dropped, kept := e.uidOf(name+"-dropped"), e.uidOf(name+"-kept")
		assert.Empty(t, e.ownersOf(name+"-dropped"))
		e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:] })
		e.settled(w)
		e.eventually("it is no longer listed", func() bool { return len(e.trackedBy(name)) == 2 })
		e.quiet(a)
		assert.Equal(t, dropped, e.uidOf(name+"-dropped"))
		require.NoError(t, e.Delete(t.Context(), w))
		e.gone(name)
		assert.Equal(t, kept, e.uidOf(name+"-kept"))
		assert.Empty(t, e.ownersOf(name+"-kept"))
		assert.Equal(t, name == "whole", e.get(&corev1.ConfigMap{}, e.cluster, name+"-other"))
	}
}

// TestRightsComeByTheAggregateLabel gives the agent the right to a custom resource after a work asked for it, in the
// way that users are told to.
// Shows: work/aggregated-roles
func TestRightsComeByTheAggregateLabel(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	widget := fmt.Sprintf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s}}", e.cluster)
	w := e.work("w", fmt.Sprintf(widgets, e.cluster), widget)
	e.create(w)
	e.eventually("the refusal is told", func() bool {
		failed := manifestCondition(e.now(w), 1, workv1.ManifestApplied)
		return failed.Status == metav1.ConditionFalse && strings.Contains(failed.Message, "forbidden")
	})
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 0, workv1.ManifestApplied).Status)
	e.allowWidgets()
	e.settled(w)
	e.live("%s", widget)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}

// TestAWorkThatBringsTheRightToItsObjectsGoesWhole has the shape of an add-on with definitions, objects of their kinds,
// and the role that lets the agent apply these.
//
// Shows: work/permissions-last, work/aggregated-roles
func TestAWorkThatBringsTheRightToItsObjectsGoesWhole(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	role := fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s,
  labels: {open-cluster-management.io/aggregate-to-work: "true"}},
  rules: [{apiGroups: [%[1]s.example], resources: [widgets], verbs: ["*"]}]}`, e.cluster)
	widget := fmt.Sprintf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s}}", e.cluster)
	w := e.work("w", widget, e.configMap("cm", nil), fmt.Sprintf(widgets, e.cluster), role)
	e.create(w)
	e.settled(w)
	e.live("%s", widget)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	for _, left := range []string{widget, role} {
		object := e.unstructuredOf("%s", left)
		assert.Error(t, e.Get(t.Context(), client.ObjectKeyFromObject(object), object), left)
	}
}

// TestWhatAReplicaSetReads has the rules from which the rollout of a ManifestWorkReplicaSet tells how far a work is:
// Progressing when any manifest is, Degraded when any is, both evaluated for the generation that is applied.
// Shows: work/replica-set-reads
func TestWhatAReplicaSetReads(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", map[string]string{"done": "no"}), e.configMap("b", map[string]string{"done": "yes"}))
	rules := e.rules("", "configmaps", "*", celRule(workv1.WorkProgressing, "object.data.done != 'yes'"),
		celRule(workv1.WorkDegraded, "object.data.done == 'never'"))
	w.Labels = map[string]string{"work.open-cluster-management.io/manifestworkreplicaset": "default.set"}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{rules}
	e.create(w)
	e.settled(w)
	assert.Equal(t, "ConditionRulesAggregated", e.is(w, workv1.WorkProgressing, metav1.ConditionTrue).Reason)
	e.is(w, workv1.WorkDegraded, metav1.ConditionFalse)
	for _, done := range []string{"yes", "never"} {
		e.edit(w, func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = e.manifests(
				e.configMap("a", map[string]string{"done": done}), e.configMap("b", map[string]string{"done": done}))
		})
		e.settled(w)
		progressing, degraded := metav1.ConditionFalse, metav1.ConditionFalse
		if done == "never" {
			progressing, degraded = metav1.ConditionTrue, metav1.ConditionTrue
		}
		e.is(w, workv1.WorkProgressing, progressing)
		e.is(w, workv1.WorkDegraded, degraded)
	}
}

// TestWorksThatShareAnObjectWriteItOnce lets two works have the same Deployment, which the API server fills in and its
// controller writes to all the time.
// Shows: work/store-forgets
func TestWorksThatShareAnObjectWriteItOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	one, two := e.work("one", e.deployment("d", 1)), e.work("two", e.deployment("d", 1))
	for _, w := range []*workv1.ManifestWork{one, two} {
		e.create(w)
		e.settled(w)
	}
	n, _ := e.quiet(a)
	e.readyPods("d", 1)
	live := e.live("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: %s}}", e.cluster)
	patch := []byte(`{"metadata":{"annotations":{"theirs":"x"}}}`)
	require.NoError(t, e.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, patch)))
	e.eventually("both have looked", func() bool { return len(a.spoke.since(n)) >= 2 })
	e.quiet(a)
	assert.Empty(t, writes(a.spoke.since(n)))
}

// TestTheRecordDoesNotWaitForTheHub makes the hub refuse every status: what was made is listed on the spoke all the
// same.
func TestTheRecordDoesNotWaitForTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.hubFault = func(req *http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/status") {
			return errors.New("the hub takes no status")
		}
		return nil
	}
	e.start()
	w := e.work("w", e.configMap("a", nil), e.configMap("b", nil))
	e.create(w)
	e.eventually("what was made is listed", func() bool {
		var applied workv1.AppliedManifestWork
		return e.get(&applied, "", e.settings.hubHash+"-w") &&
			slices.Equal([]string{"configmaps/a", "configmaps/b"}, appliedNames(&applied))
	})
	assert.Empty(t, e.now(w).Status.Conditions)
}

// TestTheFinalizerComesOnce has works with a finalizer of another client, with ours already, and one that was deleted
// before the agent saw it: that one gets none, and nothing is made for it.
// Shows: work/finalizer-once
func TestTheFinalizerComesOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	theirs, ours, late := e.work("theirs", e.configMap("theirs", nil)), e.work("ours", e.configMap("ours", nil)),
		e.work("late", e.configMap("late", nil))
	theirs.Finalizers, late.Finalizers = []string{hold}, []string{hold}
	ours.Finalizers = []string{workv1.ManifestWorkFinalizer}
	for _, w := range []*workv1.ManifestWork{theirs, ours, late} {
		e.create(w)
	}
	require.NoError(t, e.Delete(t.Context(), late))
	a := e.start()
	e.settled(theirs)
	e.settled(ours)
	_, m := e.quiet(a)
	assert.ElementsMatch(t, []string{hold, workv1.ManifestWorkFinalizer}, theirs.Finalizers)
	assert.Equal(t, []string{workv1.ManifestWorkFinalizer}, ours.Finalizers)
	assert.Equal(t, []string{hold}, e.now(late).Finalizers)
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "late"))
	for _, line := range writes(a.hub.since(0)) {
		assert.NotContains(t, line, "/manifestworks/late")
		if strings.Contains(line, "/manifestworks/ours") {
			assert.Contains(t, line, "/status", "a finalizer that is there is not written")
		}
	}
	e.edit(theirs, func(w *workv1.ManifestWork) { w.Finalizers = []string{hold} })
	e.eventually("a finalizer that was taken comes back", func() bool { return len(e.now(theirs).Finalizers) == 2 })
	e.quiet(a)
	assert.NotEmpty(t, a.hub.since(m))
	require.NoError(t, e.Delete(t.Context(), theirs))
	e.eventually("ours goes, theirs stays", func() bool {
		return len(e.now(theirs).Finalizers) == 1 && theirs.Finalizers[0] == hold
	})
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "theirs"))
	e.letGo(theirs, e.cluster, "theirs")
	e.letGo(late, e.cluster, "late")
}
