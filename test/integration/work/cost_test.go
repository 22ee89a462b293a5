package work_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestCost counts the requests of a whole life of works. Per work the spoke costs one request for each object, one to
// make the AppliedManifestWork with what is intended, and one to list what was made.
// Shows: work/no-polling, work/one-writer
func TestCost(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	const works, objects = 20, 5
	list := make([]*workv1.ManifestWork, works)
	for i := range list {
		var maps []any
		for j := range objects {
			maps = append(maps, e.configMap(fmt.Sprintf("m-%d-%d", i, j), map[string]string{"k": "v"}))
		}
		list[i] = e.work(fmt.Sprintf("w-%d", i), maps...)
		e.create(list[i])
	}
	for _, w := range list {
		e.settled(w)
	}
	e.quiet(a)
	assert.Len(t, a.spoke.since(0), works*(objects+2), "making")
	assert.Len(t, a.hub.since(0), works*2, "a finalizer and a status for each work")

	n, m := e.quiet(a)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "m-3-3"))
	cm.Data["k"] = "hacked"
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("drift is repaired", func() bool { return e.get(&cm, e.cluster, "m-3-3") && cm.Data["k"] == "v" })
	e.quiet(a)
	assert.Len(t, a.spoke.since(n), 2, "repairing is one read and one write")
	assert.Empty(t, a.hub.since(m), "and the hub need not know")
	a.stop()

	again := e.start()
	e.eventually("the second agent has looked at everything", func() bool {
		return len(again.spoke.since(0)) >= works*objects
	})
	n, m = e.quiet(again)
	assert.Len(t, again.spoke.since(0), works*objects, "a restart reads each object once")
	assert.Empty(t, writes(again.spoke.since(0)))
	assert.Empty(t, writes(again.hub.since(0)))

	for _, w := range list {
		require.NoError(t, e.Delete(t.Context(), w))
	}
	e.eventually("all works are gone", func() bool {
		var left workv1.ManifestWorkList
		return e.List(t.Context(), &left) == nil && !strings.Contains(fmt.Sprint(left.Items), e.cluster)
	})
	e.quiet(again)
	assert.LessOrEqual(t, len(again.spoke.since(n)), works*(objects+4), "deleting")
	assert.LessOrEqual(t, len(again.hub.since(m)), works*3)
}

// TestForbidden gives the agent few rights: what it may not do is told where it can be seen and costs the rest nothing.
// Shows: work/bad-manifest-alone
func TestForbidden(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	user, err := plane.User("agent-" + e.cluster)
	require.NoError(t, err)
	user.QPS = -1
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: e.cluster}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"work.open-cluster-management.io"},
			Resources: []string{"appliedmanifestworks", "appliedmanifestworks/status"},
			Verbs:     []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		},
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get", "create", "update", "patch", "delete"},
		},
	}}
	e.create(role)
	e.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.cluster},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: e.cluster},
		Subjects: []rbacv1.Subject{
			{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "agent-" + e.cluster},
		},
	})
	e.settings.spoke = user
	e.start()
	secret := fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}}", e.cluster)
	w := e.work("w", secret, e.configMap("a", nil))
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "secrets is forbidden")
	assert.Equal(t, "FetchingResourceFailed", manifestCondition(w, 0, workv1.ManifestAvailable).Reason)
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 1, workv1.ManifestApplied).Status)
	require.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	assert.Contains(t, appliedNames(e.applied()), "configmaps/a")

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(secret) })
	e.eventually("pruning goes on", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "a") })

	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"},
	})
	require.NoError(t, e.Update(t.Context(), role))
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	assert.False(t, e.get(&corev1.Secret{}, e.cluster, "s"))
}

// TestBusyObject has an object that another client touches all the time without disturbing what its manifest says.
func TestBusyObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
	e.create(w)
	e.settled(w)
	n, m := e.quiet(a)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	const touches = 60
	for i := range touches {
		cm.Annotations = map[string]string{"renewed": strconv.Itoa(i)}
		require.NoError(t, e.Update(t.Context(), &cm))
	}
	e.quiet(a)
	assert.NotEmpty(t, a.spoke.since(n))
	assert.LessOrEqual(t, len(a.spoke.since(n)), touches/4, "the agent looks a few times and then now and then")
	assert.Empty(t, writes(a.spoke.since(n)))
	assert.Empty(t, a.hub.since(m))
}
