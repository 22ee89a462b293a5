package work_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work"
)

// Shows: work/single-manifest, work/several-manifests
func TestCreateUpdateRemoveDelete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1"}), e.configMap("b", map[string]string{"k": "1"}))
	e.create(w)
	e.settled(w)

	require.Len(t, w.Status.ResourceStatus.Manifests, 2)
	assert.Equal(t, workv1.ManifestResourceMeta{
		Ordinal: 1, Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: e.cluster, Name: "b",
	}, w.Status.ResourceStatus.Manifests[1].ResourceMeta)
	assert.Contains(t, w.Finalizers, workv1.ManifestWorkFinalizer)
	a := e.applied()
	assert.Equal(t, []string{"configmaps/a", "configmaps/b"}, appliedNames(a))
	assert.Equal(t, workv1.AppliedManifestWorkSpec{
		HubHash: e.settings.hubHash, AgentID: e.settings.agentID, ManifestWorkName: "w",
	}, a.Spec)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, a.Status.AppliedResources[0].UID, string(cm.UID))
	require.Len(t, cm.OwnerReferences, 1)
	assert.Equal(t, metav1.OwnerReference{
		APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: a.Name, UID: a.UID,
	}, cm.OwnerReferences[0])
	require.Len(t, cm.ManagedFields, 1)
	assert.Equal(t, "work-agent", cm.ManagedFields[0].Manager)

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "2"}))
	})
	e.settled(w)
	e.eventually("a is changed", func() bool { return e.get(&cm, e.cluster, "a") && cm.Data["k"] == "2" })
	e.eventually("b is gone", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "b") })
	e.eventually("b is no longer listed", func() bool { return len(appliedNames(e.applied())) == 1 })
	require.Len(t, w.Status.ResourceStatus.Manifests, 1)

	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	assert.False(t, e.get(&workv1.AppliedManifestWork{}, "", a.Name))
}

// Shows: work/drift
func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "1"}))
	e.create(w)
	e.settled(w)
	e.quiet(a)

	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	was := cm.UID
	cm.Data = map[string]string{"k": "hacked", "more": "x"}
	cm.Labels = map[string]string{"kept": "yes"}
	cm.Finalizers = []string{"example.com/kept"}
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("the edit is undone", func() bool {
		return e.get(&cm, e.cluster, "a") && cm.Data["k"] == "1" && len(cm.Data) == 1
	})
	assert.Equal(t, "yes", cm.Labels["kept"], "labels of others stay")
	assert.Equal(t, []string{"example.com/kept"}, cm.Finalizers, "finalizers of others stay")

	cm.Finalizers, cm.OwnerReferences = nil, nil
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("the owner is put back", func() bool {
		return e.get(&cm, e.cluster, "a") && len(cm.OwnerReferences) == 1
	})

	require.NoError(t, e.Delete(t.Context(), &cm))
	e.eventually("the object is made again", func() bool {
		return e.get(&cm, e.cluster, "a") && cm.UID != was && cm.Data["k"] == "1"
	})
	e.eventually("its new UID is listed", func() bool {
		return e.applied().Status.AppliedResources[0].UID == string(cm.UID)
	})
}

func TestLabelsAreAdded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	cm := e.configMap("a", nil)
	cm.Labels = map[string]string{"one": "1", "two": "2"}
	w := e.work("w", cm)
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		next := e.configMap("a", nil)
		next.Labels = map[string]string{"two": "two", "three": "3"}
		w.Spec.Workload.Manifests = e.manifests(next)
	})
	e.settled(w)
	var live corev1.ConfigMap
	require.True(t, e.get(&live, e.cluster, "a"))
	assert.Equal(t, map[string]string{"one": "1", "two": "two", "three": "3"}, live.Labels)
}

// Shows: work/shared-object
func TestSharedObjectLivesUntilItsLastWorkGoes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	one, two := e.work("one", e.configMap("a", nil)), e.work("two", e.configMap("a", nil))
	e.create(one)
	e.settled(one)
	e.create(two)
	e.settled(two)
	e.quiet(a)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	require.Len(t, cm.OwnerReferences, 2)
	was := cm.UID

	require.NoError(t, e.Delete(t.Context(), one))
	e.eventually("the first work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "one") })
	e.quiet(a)
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, was, cm.UID)
	require.Len(t, cm.OwnerReferences, 1)

	require.NoError(t, e.Delete(t.Context(), two))
	e.eventually("the second work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "two") })
	assert.False(t, e.get(&cm, e.cluster, "a"))
}

// Shows: work/waits-and-names
func TestFinalizerHoldsTheWorkAndIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	held := e.configMap("held", nil)
	held.Finalizers = []string{"example.com/wait"}
	w := e.work("w", held, e.configMap("free", nil))
	e.create(w)
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	deleting := e.is(w, workv1.WorkDeleting, metav1.ConditionTrue)
	assert.Equal(t, "WorkDeleting", deleting.Reason)
	// The agent says by its own clock when it asked for the deletion; the API server may note the second after.
	said := regexp.MustCompile(`^ManifestWork is being deleted: waiting for 1 object: configmaps ` + e.cluster +
		`/held \(finalizer example\.com/wait, since ([^,)]+)\)$`)
	var cm corev1.ConfigMap
	e.eventually("the message names what holds the work", func() bool {
		deleting = e.is(w, workv1.WorkDeleting, metav1.ConditionTrue)
		return e.get(&cm, e.cluster, "held") && !cm.DeletionTimestamp.IsZero() && said.MatchString(deleting.Message)
	})
	since, err := time.Parse(time.RFC3339, said.FindStringSubmatch(deleting.Message)[1])
	require.NoError(t, err)
	assert.False(t, since.After(cm.DeletionTimestamp.Time), "since %s, deleted %s", since, cm.DeletionTimestamp)
	require.True(t, e.get(w, e.cluster, "w"))
	assert.False(t, since.Before(w.DeletionTimestamp.Time), "since %s, work deleted %s", since, w.DeletionTimestamp)
	assert.Equal(t, []string{"configmaps/held"}, appliedNames(e.applied()), "only what is left stays listed")

	require.True(t, e.get(&cm, e.cluster, "held"))
	cm.Finalizers = nil
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

// Shows: work/listed-until-gone
func TestStaleObjectStaysListedUntilGone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	held := e.configMap("held", nil)
	held.Finalizers = []string{"example.com/wait"}
	w := e.work("w", held, e.configMap("kept", nil))
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil))
	})
	e.settled(w)
	var cm corev1.ConfigMap
	e.eventually("the object is going", func() bool {
		return e.get(&cm, e.cluster, "held") && !cm.DeletionTimestamp.IsZero()
	})
	assert.Equal(t, []string{"configmaps/held", "configmaps/kept"}, appliedNames(e.applied()))
	cm.Finalizers = nil
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("it is no longer listed", func() bool { return len(appliedNames(e.applied())) == 1 })
}

// Shows: work/orphan
func TestOrphansStay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("kept", nil), e.configMap("gone", nil))
	w.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{
			{Resource: "configmaps", Namespace: e.cluster, Name: "kept"},
		}},
	}
	e.create(w)
	e.settled(w)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "kept"))
	assert.Empty(t, cm.OwnerReferences)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.True(t, e.get(&cm, e.cluster, "kept"))
	assert.False(t, e.get(&cm, e.cluster, "gone"))
}

// TestOrphansStayAlsoWithoutAPassInBetween changes the delete options and deletes, in one case the work and in the
// other a manifest, while no agent looks.
func TestOrphansStayAlsoWithoutAPassInBetween(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	whole := e.work("v", e.configMap("whole", nil))
	one := e.work("w", e.configMap("taken", nil), e.configMap("left", nil))
	for _, w := range []*workv1.ManifestWork{whole, one} {
		e.create(w)
		e.settled(w)
	}
	a.stop()
	e.edit(whole, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	})
	require.NoError(t, e.Delete(t.Context(), whole))
	e.edit(one, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("left", nil))
		w.Spec.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{
				{Resource: "configmaps", Namespace: e.cluster, Name: "taken"},
			}},
		}
	})
	e.start()
	e.gone("v")
	e.settled(one)
	assert.Equal(t, []string{"configmaps/left"}, appliedNames(e.applied()))
	for _, name := range []string{"whole", "taken"} {
		var cm corev1.ConfigMap
		require.True(t, e.get(&cm, e.cluster, name), name)
		assert.Empty(t, cm.OwnerReferences, name)
	}
	require.NoError(t, e.Delete(t.Context(), one))
	e.gone("w")
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "taken"))
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "left"))
}

func TestAppliedManifestWorkDeletedOnTheSpokeComesBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	a := e.applied()
	require.NoError(t, e.Delete(t.Context(), a))
	e.eventually("it is made again, with its object", func() bool {
		var again workv1.AppliedManifestWork
		var cm corev1.ConfigMap
		return e.get(&again, "", a.Name) && again.UID != a.UID && len(again.Status.AppliedResources) == 1 &&
			e.get(&cm, e.cluster, "a") && cm.OwnerReferences[0].UID == again.UID &&
			again.Status.AppliedResources[0].UID == string(cm.UID)
	})
}

func TestWorkThatVanishesIsEvictedAfterItsGrace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.grace = 2 * time.Second
	e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	a := e.applied()
	e.vanish(w)
	e.eventually("the objects are gone in the end", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", a.Name) && !e.get(&corev1.ConfigMap{}, e.cluster, "a")
	})
}

// Shows: work/hub-switch
func TestHubSwitchKeepsTheObjects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	old := e.applied()
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	was := cm.UID
	first.stop()

	e.settings.hubHash = work.HubHash("https://other.example")
	e.settings.grace = 10 * time.Second
	e.start()
	e.eventually("the object has two owners for a while", func() bool {
		return e.get(&cm, e.cluster, "a") && len(cm.OwnerReferences) == 2
	})
	e.eventually("the old one is evicted", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", old.Name)
	})
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, was, cm.UID)
	assert.Len(t, cm.OwnerReferences, 1)
}

// Shows: work/foreign-agent
func TestForeignAgentIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.grace = time.Second
	foreign := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: e.settings.hubHash + "-w"}}
	foreign.Spec = workv1.AppliedManifestWorkSpec{
		HubHash: e.settings.hubHash, AgentID: "somebody else", ManifestWorkName: "w",
	}
	e.create(foreign)
	a := e.start()
	w := e.work("other", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	var live workv1.AppliedManifestWork
	require.True(t, e.get(&live, "", foreign.Name))
	assert.Nil(t, live.Status.EvictionStartTime)
	require.NoError(t, e.Delete(t.Context(), &live))
}
