package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scattered makes one work with a ConfigMap in each of four namespaces, for an agent that may have three watches.
func (e *env) scattered() (namespaces []string) {
	e.Helper()
	e.settings.maxWatches = 3
	for range 4 {
		namespaces = append(namespaces, plane.Namespace(e.T, e.Name()))
	}
	return namespaces
}

// applyScattered applies a work with a ConfigMap in each namespace.
func (e *env) applyScattered(namespaces []string) {
	e.Helper()
	var works []*workv1.ManifestWork
	for i, namespace := range namespaces {
		object := e.configMap("x", map[string]string{"k": "v"})
		object.Namespace = namespace
		works = append(works, e.work(fmt.Sprint("w", i), object))
		e.create(works[i])
	}
	for _, w := range works {
		e.settled(w)
	}
}

// disturb changes each ConfigMap.
func (e *env) disturb(namespaces []string) {
	e.Helper()
	for _, namespace := range namespaces {
		require.NoError(e, e.Patch(e.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"data": {"k": "of somebody else"}}`))))
	}
}

// repaired counts the ConfigMaps that are as desired.
func (e *env) repaired(namespaces []string) (count int) {
	for _, namespace := range namespaces {
		object := &corev1.ConfigMap{}
		if e.get(object, namespace, "x") && object.Data["k"] == "v" {
			count++
		}
	}
	return count
}

// Shows: work/watches-wide
func TestDriftIsRepairedAtOnceInMoreNamespacesThanThereMayBeWatches(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	namespaces := e.scattered()
	a := e.start()
	e.applyScattered(namespaces)
	e.quiet(a)
	e.disturb(namespaces)
	e.eventually("all are repaired", func() bool { return e.repaired(namespaces) == 4 })
}

// Shows: work/watches-wide
func TestAnAgentThatMayNotWatchAllNamespacesWatchesAsManyAsItMay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	namespaces := e.scattered()
	e.narrow(namespaces)
	a := e.start()
	e.applyScattered(namespaces)
	e.quiet(a)
	e.disturb(namespaces)
	e.eventually("all that have a watch are repaired", func() bool { return e.repaired(namespaces) >= 3 })
	e.create(e.inAllNamespaces("-works", "admin"))
	e.eventually("with the right for all namespaces all are", func() bool { return e.repaired(namespaces) == 4 })
	e.disturb(namespaces)
	e.eventually("and from then on at once", func() bool { return e.repaired(namespaces) == 4 })
}

// narrow gives the agent an account with rights in some namespaces and none in all.
func (e *env) narrow(namespaces []string) {
	e.Helper()
	e.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "narrow"}})
	e.create(e.inAllNamespaces("-own", "open-cluster-management:klusterlet-work:agent"))
	for _, namespace := range namespaces {
		e.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}, RoleRef: clusterRole("admin"),
			Subjects: e.narrowAccount(),
		})
	}
	e.settings.spoke = plane.AccountConfig(e.T, e.cluster, "narrow")
}

func (e *env) narrowAccount() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: e.cluster, Name: "narrow"}}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// inAllNamespaces binds a ClusterRole to the narrow account.
func (e *env) inAllNamespaces(suffix, name string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.cluster + suffix}, RoleRef: clusterRole(name), Subjects: e.narrowAccount(),
	}
}

// A work claims watches also for what its executor may not apply, and in namespaces that do not exist.
// Shows: work/watches-wide
func TestAWorkThatMayDoNothingTakesNoWatchThatRuns(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	namespaces := e.scattered()
	e.settings.maxWatches = 6
	e.narrow(namespaces)
	a := e.start()
	e.applyScattered(namespaces)
	e.quiet(a)
	var objects []any
	for i, kind := range []string{"Secret", "Secret", "Secret", "Service", "Service"} {
		objects = append(objects, map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": fmt.Sprint("none-", i), "name": "x"},
		})
	}
	attack := e.executed("attack", objects...)
	e.create(attack)
	e.is(attack, workv1.WorkApplied, metav1.ConditionFalse)
	e.quiet(a)
	e.disturb(namespaces)
	e.eventually("all are repaired", func() bool { return e.repaired(namespaces) == 4 })
}
