package work_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

const hold = "example.com/hold"

// ingress is a manifest of a kind that is applied last and deleted first, held by a finalizer.
func (e *env) ingress(name string) string {
	return fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s, namespace: %s, "+
		"finalizers: [%s]}, spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}", name, e.cluster, hold)
}

// letGo takes all finalizers from an object.
func (e *env) letGo(o client.Object, namespace, name string) {
	e.Helper()
	e.eventually("the finalizers of "+name+" are taken away", func() bool {
		return e.get(o, namespace, name) && e.Patch(e.Context(), o, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`))) == nil
	})
}

// gone waits until a work and its AppliedManifestWork are gone.
func (e *env) gone(name string) {
	e.Helper()
	e.eventually("the work "+name+" is gone", func() bool {
		return !e.get(&workv1.ManifestWork{}, e.cluster, name)
	})
	assert.False(e, e.get(&workv1.AppliedManifestWork{}, "", e.settings.hubHash+"-"+name), "and was outlived by nothing")
}

// deletingSays waits until the condition Deleting of the work says the text.
func (e *env) deletingSays(w *workv1.ManifestWork, text string) {
	e.Helper()
	suite.Eventually(e, func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDeleting)
		if c == nil || !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition Deleting must say %q and is %v", text, c)
		}
		return nil
	})
}

// deletions keeps the last part of the path of each DELETE.
func deletions(lines []string) []string {
	var names []string
	for _, line := range lines {
		if path, is := strings.CutPrefix(line, "DELETE "); is {
			path, _, _ = strings.Cut(path, "?")
			names = append(names, path[strings.LastIndex(path, "/")+1:])
		}
	}
	return names
}

// Shows: work/custom-object-merged, work/aggregated-roles, work/deletion-order
func TestDeletionGoesInTheReverseOrder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	a := e.start()
	w := e.work("w",
		fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s-own}}", e.cluster),
		fmt.Sprintf(widgets, e.cluster),
		fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: %s}}", e.cluster),
		fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s}, spec: {ports: [{port: 80}]}}", e.cluster),
		e.configMap("cm", nil),
		fmt.Sprintf("{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: cr, namespace: %[1]s, finalizers: [%[2]s]}}",
			e.cluster, hold))
	e.create(w)
	e.settled(w)
	n, _ := e.quiet(a)

	require.NoError(t, e.Delete(t.Context(), w))
	e.deletingSays(w, fmt.Sprintf("waiting for 1 object: widgets.%[1]s.example %[1]s/cr (finalizer %[2]s, since ",
		e.cluster, hold))
	e.deletingSays(w, "; deleted after that: services "+e.cluster+"/s, configmaps "+e.cluster+"/cm, roles")
	e.quiet(a)
	assert.Equal(t, []string{e.settings.hubHash + "-w", "cr"}, deletions(a.spoke.since(n)))
	assert.Len(t, appliedNames(e.applied()), 6, "what is not gone stays listed")

	cr := e.unstructuredOf("{apiVersion: %s.example/v1, kind: Widget}", e.cluster)
	e.letGo(cr, e.cluster, "cr")
	e.gone("w")
	order := deletions(a.spoke.since(n))[2:]
	require.Len(t, order, 5)
	assert.Equal(t, []string{"s", "cm", "r"}, order[:3])
	assert.ElementsMatch(t, []string{e.cluster + "-own", "widgets." + e.cluster + ".example"}, order[3:])
}

// Shows: work/waits-and-names, work/deletion-order
func TestWhatDoesNotGoHoldsUpTheOthersOnlySoLong(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.patience = 2 * time.Second
	e.start()
	w := e.work("w", e.ingress("stuck"), e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.deletingSays(w, "ingresses.networking.k8s.io "+e.cluster+"/stuck (finalizer "+hold)
	var ingress networkingv1.Ingress
	require.True(t, e.get(&ingress, e.cluster, "stuck"))
	e.eventually("the other one goes in the end", func() bool { return !e.get(&corev1.ConfigMap{}, e.cluster, "a") })
	assert.GreaterOrEqual(t, time.Since(ingress.DeletionTimestamp.Time), e.settings.patience)
	e.eventually("only what is there stays listed", func() bool {
		return assert.ObjectsAreEqual([]string{"ingresses/stuck"}, appliedNames(e.applied()))
	})
	e.letGo(&ingress, e.cluster, "stuck")
	e.gone("w")
}

// Shows: work/listed-until-gone, work/deletion-order
func TestRemovedManifestsGoInTheReverseOrder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("kept", nil), e.configMap("a", nil), e.ingress("stuck"))
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil)) })
	e.settled(w)
	var ingress networkingv1.Ingress
	e.eventually("the one that goes first is going", func() bool {
		return e.get(&ingress, e.cluster, "stuck") && !ingress.DeletionTimestamp.IsZero()
	})
	e.quiet(a)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"), "the other one waits")
	assert.Equal(t, []string{"configmaps/a", "configmaps/kept", "ingresses/stuck"}, appliedNames(e.applied()))

	// What waits for its turn may be wanted again.
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil), e.configMap("a", nil))
	})
	e.settled(w)
	e.letGo(&ingress, e.cluster, "stuck")
	e.eventually("it is no longer listed", func() bool { return len(appliedNames(e.applied())) == 2 })
	e.quiet(a)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// Shows: work/pruned
func TestManifestRemovedBeforeItsCreationSettles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", e.configMap("kept", nil))
	e.create(w)
	for i := range 10 {
		e.edit(w, func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil), e.configMap(fmt.Sprintf("brief-%d", i), nil))
		})
		e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(e.configMap("kept", nil)) })
	}
	e.settled(w)
	e.eventually("only the one is left", func() bool {
		var list corev1.ConfigMapList
		require.NoError(t, e.List(t.Context(), &list, client.InNamespace(e.cluster)))
		mine := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return !strings.HasPrefix(cm.Name, "brief") })
		return len(mine) == 0 && assert.ObjectsAreEqual([]string{"configmaps/kept"}, appliedNames(e.applied()))
	})
	require.Len(t, w.Status.ResourceStatus.Manifests, 1)
}

// Shows: work/namespace-after-content
func TestNamespaceListedAfterWhatIsInIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	own := e.cluster + "-own"
	inside := func(name string) *corev1.ConfigMap {
		cm := e.configMap(name, nil)
		cm.Namespace = own
		return cm
	}
	namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", own)
	w := e.work("w", inside("one"), inside("two"), namespace)
	e.create(w)
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(inside("one"), namespace) })
	e.settled(w)
	e.eventually("what was removed is gone", func() bool { return !e.get(&corev1.ConfigMap{}, own, "two") })
	assert.True(t, e.get(&corev1.ConfigMap{}, own, "one"))

	// Another client's object in the namespace holds the deletion, and the work says so.
	foreign := inside("foreign")
	foreign.Finalizers = []string{hold}
	e.create(foreign)
	require.NoError(t, e.Delete(t.Context(), w))
	e.deletingSays(w, "namespaces "+own+" (since ")
	e.deletingSays(w, "Some content in the namespace has finalizers remaining: "+hold+" in 1 resource instances")
	assert.False(t, e.get(&corev1.ConfigMap{}, own, "one"), "what the work has in it went before")
	e.letGo(foreign, own, "foreign")
	e.gone("w")
	assert.False(t, e.get(&corev1.Namespace{}, "", own))
}

// Shows: work/job
func TestPodsOfAJobGoWithIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.work("w", fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: %s}, spec: {template: "+
		"{spec: {restartPolicy: Never, containers: [{name: c, image: example.com/none}]}}}}", e.cluster))
	e.create(w)
	e.settled(w)
	pods := func() int {
		var list corev1.PodList
		require.NoError(t, e.List(t.Context(), &list, client.InNamespace(e.cluster)))
		return len(list.Items)
	}
	e.eventually("the job has a pod", func() bool { return pods() == 1 })
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.False(t, e.get(&batchv1.Job{}, e.cluster, "j"))
	e.eventually("the pod goes too", func() bool { return pods() == 0 })
}

// Shows: work/other-owners
func TestOnlyOtherWorksProtectAnObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w, other := e.work("w", e.configMap("shared", nil), e.configMap("mine", nil)), e.work("other", e.configMap("shared", nil))
	e.create(w)
	e.settled(w)
	e.create(other)
	e.settled(other)
	owner := e.configMap("owner", nil)
	e.create(owner)
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "mine"))
	cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	})
	require.NoError(t, e.Update(t.Context(), &cm))
	e.quiet(a)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.False(t, e.get(&cm, e.cluster, "mine"))
	require.True(t, e.get(&cm, e.cluster, "shared"))
	require.Len(t, cm.OwnerReferences, 1)
	assert.Equal(t, e.settings.hubHash+"-other", cm.OwnerReferences[0].Name)
}

// TestDeletionCosts counts the requests of a deletion that nothing holds up: on the spoke one for each object, whatever
// its rank, and two for the AppliedManifestWork; on the hub the one that lets the work go.
func TestDeletionCosts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	const works = 5
	list := make([]*workv1.ManifestWork, works)
	for i := range list {
		list[i] = e.work(fmt.Sprintf("w-%d", i), e.configMap(fmt.Sprintf("m-%d", i), nil),
			fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s-%d, namespace: %s}, spec: {ports: [{port: 80}]}}",
				i, e.cluster),
			fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: a-%d, namespace: %s}}", i, e.cluster),
			fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r-%d, namespace: %s}}",
				i, e.cluster))
		e.create(list[i])
	}
	for _, w := range list {
		e.settled(w)
	}
	n, m := e.quiet(a)
	for _, w := range list {
		require.NoError(t, e.Delete(t.Context(), w))
	}
	for _, w := range list {
		e.gone(w.Name)
	}
	e.quiet(a)
	assert.Len(t, a.spoke.since(n), works*(4+2))
	assert.Len(t, a.hub.since(m), works)
}

// TestWatchesGoWithTheObjects removes the last object of a kind from a living work.
// Shows: work/watches-end
func TestWatchesGoWithTheObjects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var open atomic.Int32
	e.settings.fault = func(req *http.Request) bool {
		if req.URL.Query().Get("watch") == "true" && strings.HasSuffix(req.URL.Path, "/"+e.cluster+"/secrets") {
			open.Add(1)
			context.AfterFunc(req.Context(), func() { open.Add(-1) })
		}
		return false
	}
	e.start()
	w := e.work("w", e.configMap("a", nil), fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}}", e.cluster))
	e.create(w)
	e.settled(w)
	e.eventually("secrets are watched", func() bool { return open.Load() > 0 })
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(e.configMap("a", nil)) })
	e.settled(w)
	e.eventually("and no more when there is none", func() bool { return open.Load() == 0 })
}
