package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/manifests"
)

// addOn makes a ManagedClusterAddOn hello for the cluster, as a hub has it, with finalizers.
func (e *env) addOn(finalizers ...string) *unstructured.Unstructured {
	e.Helper()
	require.NoError(e, plane.Apply(e.Context(), manifests.CRDs()...))
	addon := e.unstructuredOf("{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn, "+
		"metadata: {name: hello, namespace: %s}, spec: {}}", e.cluster)
	addon.SetFinalizers(finalizers)
	e.create(addon)
	return addon
}

// addonWork is a ManifestWork as a hub writes it for the add-on hello: in the namespace of the add-on with the add-on
// as its controller, and elsewhere, for which addon is nil, without an owner.
func (e *env) addonWork(name string, addon *unstructured.Unstructured, manifests ...any) *workv1.ManifestWork {
	e.Helper()
	w := e.work(name, manifests...)
	w.Labels = map[string]string{addonv1alpha1.AddonLabelKey: "hello"}
	if addon != nil {
		w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(addon, addon.GroupVersionKind())}
	}
	return w
}

// configured marks a work as one that a hub rendered from a configuration.
func configured(w *workv1.ManifestWork) *workv1.ManifestWork {
	w.Annotations = map[string]string{workv1.ManifestConfigSpecHashAnnotationKey: `{"addondeploymentconfigs.` +
		`addon.open-cluster-management.io/default/hello":"5f1d"}`}
	return w
}

// orphaning makes a work leave ConfigMaps behind.
func orphaning(w *workv1.ManifestWork, namespace string, names ...string) *workv1.ManifestWork {
	rules := &workv1.SelectivelyOrphan{}
	for _, name := range names {
		rules.OrphaningRules = append(rules.OrphaningRules,
			workv1.OrphaningRule{Resource: "configmaps", Namespace: namespace, Name: name})
	}
	w.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: rules,
	}
	return w
}

// hookJob is a Job that a hub takes for a pre-delete hook. Its selector is its own, so that the API server adds
// nothing to it.
func hookJob(namespace, name string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %[2]s, namespace: %[1]s,
		annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}, spec: {backoffLimit: 0, manualSelector: true,
		selector: {matchLabels: {batch.kubernetes.io/job-name: %[2]s}},
		template: {metadata: {labels: {batch.kubernetes.io/job-name: %[2]s}},
		spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`, namespace, name)
}

// hookPod is a Pod that a hub takes for a pre-delete hook.
func hookPod(namespace, name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s,
		labels: {addon.open-cluster-management.io/addon-pre-delete: ""}},
		spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}`, name, namespace)
}

// hookDone tells what a hub waits for before it lets an add-on go: the work of the hook is available, and each of its
// configurations has seen its Job complete or its Pod succeed.
func hookDone(w *workv1.ManifestWork) bool {
	if !meta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkAvailable) {
		return false
	}
	for _, config := range w.Spec.ManifestConfigs {
		done := false
		for i, m := range w.Status.ResourceStatus.Manifests {
			if m.ResourceMeta.Resource != config.ResourceIdentifier.Resource ||
				m.ResourceMeta.Name != config.ResourceIdentifier.Name {
				continue
			}
			for _, value := range values(w, i) {
				done = done || value == `JobComplete="True"` || value == `PodPhase="Succeeded"`
			}
		}
		if !done {
			return false
		}
	}
	return true
}

// letAddOnGo takes the finalizers from an add-on that is being deleted and then deletes its works, as the garbage
// collector does after a while.
func (e *env) letAddOnGo(addon *unstructured.Unstructured, works ...*workv1.ManifestWork) {
	e.Helper()
	e.letGo(addon, e.cluster, addon.GetName())
	for _, w := range works {
		require.NoError(e, client.IgnoreNotFound(e.Delete(e.Context(), w)))
	}
	for _, w := range works {
		e.gone(w.Name)
	}
}

// podEnds lets a Pod that no Job made end in a phase.
func (e *env) podEnds(name string, phase corev1.PodPhase) {
	e.Helper()
	e.eventually("the pod ends", func() bool {
		var pod corev1.Pod
		if !e.get(&pod, e.cluster, name) {
			return false
		}
		pod.Status.Phase = phase
		return e.Status().Update(e.Context(), &pod) == nil
	})
}

// noPods waits until the namespace of the test has no Pods.
func (e *env) noPods() {
	e.Helper()
	e.eventually("no pod is left", func() bool {
		var pods corev1.PodList
		return e.List(e.Context(), &pods, client.InNamespace(e.cluster)) == nil && len(pods.Items) == 0
	})
}

// helloWork deploys the add-on hello as a hub does, with a ConfigMap that is to stay, and waits until it runs.
func (e *env) helloWork(addon *unstructured.Unstructured) *workv1.ManifestWork {
	e.Helper()
	data := e.configMap("data", map[string]string{"k": "v"})
	data.Annotations = map[string]string{addonv1alpha1.DeletionOrphanAnnotationKey: ""}
	deploy := orphaning(configured(e.addonWork("addon-hello-deploy-0", addon,
		fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: hello, namespace: %s}}", e.cluster),
		e.deployment("hello", 1), data)), e.cluster, "data")
	deploy.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("apps", "deployments", "hello", wellKnownStatus()),
	}
	e.create(deploy)
	e.settled(deploy)
	e.readyPods("hello", 1)
	e.reports(deploy, 1, "ReadyReplicas=1", "Replicas=1", "AvailableReplicas=1")
	return deploy
}

// hookWork runs the pre-delete hooks of the add-on hello as a hub does, a Job goodbye and a Pod farewell, and waits
// until they are there.
func (e *env) hookWork(addon *unstructured.Unstructured, rules ...workv1.ConditionRule) *workv1.ManifestWork {
	e.Helper()
	hook := e.addonWork("addon-hello-pre-delete", addon, hookJob(e.cluster, "goodbye"), hookPod(e.cluster, "farewell"))
	hook.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("batch", "jobs", "goodbye", wellKnownStatus()), e.feedback("", "pods", "farewell", wellKnownStatus()),
	}
	hook.Spec.ManifestConfigs[0].ConditionRules = rules
	e.create(hook)
	e.settled(hook)
	e.reports(hook, 1, `PodPhase="Pending"`)
	assert.False(e, hookDone(hook))
	return hook
}

// TestPreDeleteHook plays the hub that removes an add-on with a pre-delete hook: the hook runs when its work comes and
// not before, its outcome reaches the hub, meanwhile the add-on runs on, and afterwards everything goes but what is to
// stay.
func TestPreDeleteHook(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	addon := e.addOn(addonv1alpha1.AddonPreDeleteHookFinalizer)
	deploy := e.helloWork(addon)
	assert.Empty(t, e.ownersOf("data"))
	e.quiet(a)
	var job batchv1.Job
	assert.False(t, e.get(&job, e.cluster, "goodbye"), "no hook runs while the add-on is wanted")

	require.NoError(t, e.Delete(t.Context(), addon))
	hook := e.hookWork(addon)
	require.True(t, e.get(&job, e.cluster, "goodbye"))
	// The hub looks after the add-on until its hook is done, and so does the agent.
	require.NoError(t, e.Delete(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "hello"},
	}))
	e.eventually("what the add-on needs comes back", func() bool { return e.get(&corev1.ServiceAccount{}, e.cluster, "hello") })

	// A hook that ends while the agent is away is reported all the same, and not run again.
	a.stop()
	e.endPods("goodbye", 1, corev1.PodSucceeded)
	e.eventually("the Job is complete", func() bool {
		var ended batchv1.Job
		return e.get(&ended, e.cluster, "goodbye") && ended.Status.CompletionTime != nil
	})
	a = e.start()
	assert.Equal(t, metav1.ConditionTrue, e.reports(hook, 0, `JobComplete="True"`, "JobSucceeded=1").Status)
	assert.False(t, hookDone(hook), "the Pod has not ended")
	e.podEnds("farewell", corev1.PodSucceeded)
	e.reports(hook, 1, `PodPhase="Succeeded"`)
	assert.True(t, hookDone(hook))
	e.quiet(a)
	was := job.UID
	require.True(t, e.get(&job, e.cluster, "goodbye"))
	assert.Equal(t, was, job.UID)
	assert.True(t, e.get(&appsv1.Deployment{}, e.cluster, "hello"))
	e.untouched(addon, deploy, hook)

	e.letAddOnGo(addon, deploy, hook)
	assert.False(t, e.get(&appsv1.Deployment{}, e.cluster, "hello"))
	assert.False(t, e.get(&corev1.ServiceAccount{}, e.cluster, "hello"))
	assert.False(t, e.get(&job, e.cluster, "goodbye"))
	e.noPods()
	assert.Empty(t, e.ownersOf("data"))
	kept := e.data("data", map[string]string{"k": "v"})
	assert.Contains(t, kept.Annotations, addonv1alpha1.DeletionOrphanAnnotationKey)
}

// untouched checks that what the hub wrote on the works of an add-on is still there.
func (e *env) untouched(addon *unstructured.Unstructured, deploy, hook *workv1.ManifestWork) {
	e.Helper()
	for _, w := range []*workv1.ManifestWork{e.now(deploy), e.now(hook)} {
		require.Len(e, w.OwnerReferences, 1)
		assert.Equal(e, addon.GetUID(), w.OwnerReferences[0].UID)
		assert.Equal(e, map[string]string{addonv1alpha1.AddonLabelKey: "hello"}, w.Labels)
	}
	assert.Contains(e, deploy.Annotations, workv1.ManifestConfigSpecHashAnnotationKey)
}

// TestAHookThatFails has a hook whose Job fails: it is not reported as complete, whatever a condition rule makes of its
// end, and holds the add-on until a user takes the finalizer. Then all goes, the Pods of the hook too.
func TestAHookThatFails(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	addon := e.addOn(addonv1alpha1.AddonPreDeleteHookFinalizer)
	deploy := configured(e.addonWork("addon-hello-deploy-0", addon, e.configMap("config", nil)))
	e.create(deploy)
	e.settled(deploy)
	require.NoError(t, e.Delete(t.Context(), addon))
	hook := e.hookWork(addon, completeRule())
	e.endPods("goodbye", 1, corev1.PodFailed)
	e.podEnds("farewell", corev1.PodFailed)
	e.says(hook, 0, workv1.ManifestComplete, metav1.ConditionTrue, "Job is finished")
	e.reports(hook, 0)
	e.reports(hook, 1, `PodPhase="Failed"`)
	e.quiet(a)
	e.settled(hook)
	assert.False(t, hookDone(hook))
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "config"))

	e.letAddOnGo(addon, deploy, hook)
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "config"))
	assert.False(t, e.get(&batchv1.Job{}, e.cluster, "goodbye"))
	e.noPods()
}

// TestTheOrphanOfAnAddOnMayBeChosenLate lets an add-on that runs already get the annotation deletion-orphan on one of
// its objects, and another lose it, before it goes with a finalizer on one that is to go.
func TestTheOrphanOfAnAddOnMayBeChosenLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	addon := e.addOn()
	deploy := orphaning(configured(e.addonWork("addon-hello-deploy-0", addon,
		e.configMap("late", nil), e.configMap("never", nil))), e.cluster, "never")
	e.create(deploy)
	e.settled(deploy)
	owners := func(name string) []types.UID {
		var cm corev1.ConfigMap
		require.True(t, e.get(&cm, e.cluster, name))
		uids := []types.UID{}
		for _, ref := range cm.OwnerReferences {
			uids = append(uids, ref.UID)
		}
		return uids
	}
	assert.Empty(t, owners("never"))
	assert.Len(t, owners("late"), 1)
	e.edit(deploy, func(w *workv1.ManifestWork) {
		late := e.configMap("late", nil)
		late.Annotations = map[string]string{addonv1alpha1.DeletionOrphanAnnotationKey: ""}
		w.Spec.Workload.Manifests = e.manifests(late, e.configMap("never", nil))
		orphaning(w, e.cluster, "late")
	})
	e.settled(deploy)
	assert.Empty(t, owners("late"))
	assert.Len(t, owners("never"), 1)
	var held corev1.ConfigMap
	require.True(t, e.get(&held, e.cluster, "never"))
	held.Finalizers = []string{hold}
	require.NoError(t, e.Update(t.Context(), &held))

	require.NoError(t, e.Delete(t.Context(), addon))
	require.NoError(t, e.Delete(t.Context(), deploy))
	e.deletingSays(deploy, "waiting for 1 object: configmaps "+e.cluster+"/never")
	e.letGo(&held, e.cluster, "never")
	e.gone(deploy.Name)
	assert.Empty(t, owners("late"))
}
