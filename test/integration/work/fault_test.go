package work_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestNothingIsOrphanedByACrash lets an agent make objects but never list them, and then drops one from the spec.
// Shows: work/intent-first
func TestNothingIsOrphanedByACrash(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.fault = func(req *http.Request) bool {
		return req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/status")
	}
	broken := e.start()
	w := e.work("w", e.configMap("kept", nil), e.configMap("dropped", nil))
	e.create(w)
	e.eventually("both are made", func() bool {
		return e.get(&corev1.ConfigMap{}, e.cluster, "kept") && e.get(&corev1.ConfigMap{}, e.cluster, "dropped")
	})
	broken.stop()
	assert.Empty(t, e.applied().Status.AppliedResources)

	e.settings.fault = nil
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil))
	})
	a := e.start()
	e.settled(w)
	e.eventually("what was dropped is pruned", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "dropped") })
	e.quiet(a)
	assert.Equal(t, []string{"configmaps/kept"}, appliedNames(e.applied()))
	assert.NotContains(t, e.applied().Annotations["work.spokelet.io/intent"], "dropped")
}

// TestFailedDeletionKeepsTheWork refuses the deletion of one object until the work has told that.
// Shows: work/failed-deletion-kept
func TestFailedDeletionKeepsTheWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var allowed atomic.Bool
	e.settings.fault = func(req *http.Request) bool {
		return req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/stuck") && !allowed.Load()
	}
	e.start()
	w := e.work("w", e.configMap("stuck", nil), e.configMap("free", nil))
	e.create(w)
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the other object is gone", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "free") })
	e.is(w, workv1.WorkDeleting, metav1.ConditionTrue)
	e.eventually("what could not be deleted stays listed", func() bool {
		return assert.ObjectsAreEqual([]string{"configmaps/stuck"}, appliedNames(e.applied()))
	})
	require.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "stuck"))
	allowed.Store(true)
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "stuck"), "not before its object")
}

// TestDeletedRightAfterItsCreation races the deletion of works with their creation.
// Shows: work/created-meanwhile
func TestDeletedRightAfterItsCreation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	first := e.work("first", e.configMap("first", nil))
	e.create(first)
	e.settled(first)
	for i := range 20 {
		w := e.work(fmt.Sprintf("w-%d", i), e.configMap(fmt.Sprintf("a-%d", i), nil))
		e.create(w)
		if i%2 == 0 {
			e.eventually("the agent has begun", func() bool {
				return e.get(w, e.cluster, w.Name) && len(w.Finalizers) > 0
			})
		}
		require.NoError(t, e.Delete(t.Context(), w))
	}
	e.eventually("all works but the first are gone", func() bool {
		var left workv1.ManifestWorkList
		return e.List(t.Context(), &left) == nil && countOf(left.Items, e.cluster) == 1
	})
	left := func() (names []string) {
		var maps corev1.ConfigMapList
		require.NoError(t, e.List(t.Context(), &maps))
		for i := range maps.Items {
			if maps.Items[i].Namespace == e.cluster && strings.HasPrefix(maps.Items[i].Name, "a-") {
				names = append(names, "ConfigMap "+maps.Items[i].Name)
			}
		}
		var applied workv1.AppliedManifestWorkList
		require.NoError(t, e.List(t.Context(), &applied))
		for i := range applied.Items {
			if strings.HasPrefix(applied.Items[i].Name, e.settings.hubHash+"-w-") {
				names = append(names, "AppliedManifestWork "+applied.Items[i].Name)
			}
		}
		return names
	}
	e.eventually("nothing of them is left", func() bool { return len(left()) == 0 })
	e.quiet(a)
	assert.Empty(t, left(), "and nothing is made again")
}

// countOf counts the works of a cluster.
func countOf(works []workv1.ManifestWork, cluster string) int {
	n := 0
	for i := range works {
		if works[i].Namespace == cluster {
			n++
		}
	}
	return n
}

// TestTwoWorksThatDisagreeDoNotStorm lets two works want different contents of one object.
func TestTwoWorksThatDisagreeDoNotStorm(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	one := e.work("one", e.configMap("a", map[string]string{"k": "1"}))
	two := e.work("two", e.configMap("a", map[string]string{"k": "2"}))
	e.create(one)
	e.settled(one)
	e.create(two)
	e.settled(two)
	e.quiet(a)
	assert.Less(t, len(writes(a.spoke.since(0))), 40, "after a few rounds they slow down")
	require.NoError(t, e.Delete(t.Context(), two))
	e.eventually("the one that is left wins", func() bool {
		var cm corev1.ConfigMap
		return !e.get(&workv1.ManifestWork{}, e.cluster, "two") && e.get(&cm, e.cluster, "a") && len(cm.OwnerReferences) == 1
	})
}
