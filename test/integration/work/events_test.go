package work_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told waits for an Event with the reason about the work, and returns it.
func (e *env) told(w *workv1.ManifestWork, reason string) eventsv1.Event {
	e.Helper()
	var found eventsv1.Event
	e.eventually("the hub is told "+reason, func() bool {
		for _, event := range e.events(w) {
			if event.Reason == reason {
				found = event
				return true
			}
		}
		return false
	})
	return found
}

// events lists the Events about the work.
func (e *env) events(w *workv1.ManifestWork) []eventsv1.Event {
	e.Helper()
	var list eventsv1.EventList
	require.NoError(e, e.List(e.Context(), &list, client.InNamespace(e.cluster)))
	var about []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.Kind == "ManifestWork" && event.Regarding.Name == w.Name {
			about = append(about, event)
		}
	}
	return about
}

// Shows: work/events-and-metrics
func TestEventsTellWhatHappensToAWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.events = true
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	assert.Empty(t, e.events(w), "that everything is well needs no words")

	var cm corev1.ConfigMap
	drift := func(to string) {
		require.True(t, e.get(&cm, e.cluster, "a"))
		cm.Data = map[string]string{"k": to}
		require.NoError(t, e.Update(t.Context(), &cm))
		e.eventually("drift is repaired", func() bool { return e.get(&cm, e.cluster, "a") && cm.Data["k"] == "v" })
	}
	drift("one")
	repaired := e.told(w, "DriftRepaired")
	assert.Equal(t, "Put right what was changed on the spoke: configmaps "+e.cluster+"/a (updated)", repaired.Note)
	assert.Equal(t, corev1.EventTypeNormal, repaired.Type)
	assert.Equal(t, w.UID, repaired.Regarding.UID)
	assert.Equal(t, "klusterlet-work-agent", repaired.ReportingController)
	drift("two")
	drift("three")
	_, n := e.quiet(a)
	assert.Len(t, e.events(w), 1, "and it is told once, however often")

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests("{apiVersion: example.com/v1, kind: Nothing, metadata: {name: x}}")
	})
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	failed := e.told(w, "ApplyFailed")
	assert.Equal(t, corev1.EventTypeWarning, failed.Type)
	assert.Contains(t, failed.Note, `Nothing x: Failed to apply manifest: the server doesn't have a resource type "Nothing"`)

	held := e.configMap("held", nil)
	held.Finalizers = []string{hold}
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(held) })
	e.settled(w)
	assert.Equal(t, corev1.EventTypeNormal, e.told(w, "ApplyRecovered").Type)

	require.NoError(t, e.Delete(t.Context(), w))
	blocked := e.told(w, "DeletionBlocked")
	assert.Contains(t, blocked.Note, "Deletion waits for 1 object: configmaps "+e.cluster+"/held (finalizer "+hold)
	e.letGo(&corev1.ConfigMap{}, e.cluster, "held")
	e.gone("w")
	e.quiet(a)
	assert.Len(t, e.events(w), 4)
	assert.Less(t, len(a.hub.since(n)), 20)
}

// Shows: work/eviction-needs-hub, work/events-and-metrics
func TestEvictionIsToldOnTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.events, e.settings.grace = true, 2*time.Second
	w := e.applyAndStop()
	e.vanish(w)
	e.start()
	started := e.told(w, "EvictionStarted")
	assert.Contains(t, started.Note, "its objects on the spoke are deleted at ")
	assert.Equal(t, types.UID(""), started.Regarding.UID)
	e.told(w, "Evicted")
	e.eventually("it is gone", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", e.settings.hubHash+"-w")
	})
}

// TestAHubThatTakesNoEventsCostsNothing has a hub from before its agents might tell Events.
func TestAHubThatTakesNoEventsCostsNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.events = true
	role := e.unstructuredOf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}")
	require.True(t, e.get(role, e.cluster, "work"))
	rules, _ := role.Object["rules"].([]any)
	role.Object["rules"] = rules[:2]
	require.NoError(t, e.Update(t.Context(), role))
	a := e.start()
	w := e.work("w", "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: x}}", e.configMap("a", nil))
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	e.quiet(a)
	assert.Empty(t, e.events(w))
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(e.configMap("a", nil)) })
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}
