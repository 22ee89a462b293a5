package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// live reads an object that is given by its manifest.
func (e *env) live(manifest string, args ...any) *unstructured.Unstructured {
	e.Helper()
	o := e.unstructuredOf(manifest, args...)
	require.NoError(e, e.Get(e.Context(), client.ObjectKeyFromObject(o), o))
	return o
}

// undisturbed restarts the agent and checks that it finds nothing to write.
func (e *env) undisturbed(a *agent, objects int) {
	e.Helper()
	e.quiet(a)
	a.stop()
	again := e.start()
	e.eventually("the second agent has looked", func() bool { return len(again.spoke.since(0)) >= objects })
	e.quiet(again)
	assert.Empty(e, writes(again.spoke.since(0)), "a restart writes nothing")
	assert.Empty(e, writes(again.hub.since(0)))
}

// TestKindsThatTheServerFillsIn has one object of each kind of which the API server changes or adds something: none is
// written twice.
func TestKindsThatTheServerFillsIn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allow("storage.k8s.io", "storageclasses", "csidrivers")
	e.allow("admissionregistration.k8s.io", "*")
	a := e.start()
	list := []any{
		fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s},
			spec: {type: NodePort, selector: {a: b}, ports: [{port: 80}]}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: policy, namespace: %s},
			spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p, namespace: %s},
			spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: st, namespace: %s}, spec: {serviceName: s,
			selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [
			{name: c, image: "example.com/c:1", resources: {limits: {cpu: 1000m}}}]}}}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: %s},
			spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: %s},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: example.com/x}`,
			e.cluster),
		fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: %s.example},
			spec: {podInfoOnMount: true}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
			metadata: {name: %[1]s}, webhooks: [{name: a.%[1]s.example, sideEffects: None, admissionReviewVersions: [v1],
			clientConfig: {service: {name: s, namespace: %[1]s}},
			rules: [{apiGroups: [%[1]s.example], apiVersions: [v1], operations: [CREATE], resources: [none]}]}]}`, e.cluster),
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy,
			metadata: {name: %[1]s}, spec: {matchConstraints: {resourceRules: [{apiGroups: [%[1]s.example], apiVersions: [v1],
			operations: [CREATE], resources: [none]}]}, validations: [{expression: "true"}]}}`, e.cluster),
	}
	w := e.work("w", list...)
	e.create(w)
	e.settled(w)
	e.undisturbed(a, len(list))
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

func TestServiceIsKept(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	const service = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s},
		spec: {selector: {a: b}, ports: [{port: %d}]}}`
	w := e.work("w", fmt.Sprintf(service, e.cluster, 80))
	e.create(w)
	e.settled(w)
	var live corev1.Service
	require.True(t, e.get(&live, e.cluster, "s"))
	assert.Len(t, live.Annotations["operator.openshift.io/spec-hash"], 64)
	address := live.Spec.ClusterIP
	port := func(want int32) {
		t.Helper()
		e.eventually(fmt.Sprintf("the port should be %d", want), func() bool {
			return e.get(&live, e.cluster, "s") && live.Spec.Ports[0].Port == want && len(live.Spec.Ports) == 1
		})
		assert.Equal(t, address, live.Spec.ClusterIP, "the address stays")
	}
	live.Spec.Ports[0].Port = 8080
	require.NoError(t, e.Update(t.Context(), &live))
	port(80)
	was := live.Annotations["operator.openshift.io/spec-hash"]
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(service, e.cluster, 81))
	})
	port(81)
	assert.NotEqual(t, was, live.Annotations["operator.openshift.io/spec-hash"])
}

func TestStorageClassIsMadeAnewWhenItMust(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allow("storage.k8s.io", "storageclasses", "csidrivers")
	a := e.start()
	const class = `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: example.com/x, allowVolumeExpansion: %t,
		metadata: {name: %s, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, parameters: {p: "%d"}}`
	const driver = `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: %s.example},
		spec: {attachRequired: %t, requiresRepublish: %t}}`
	w := e.work("w", fmt.Sprintf(class, false, e.cluster, 1), fmt.Sprintf(driver, e.cluster, true, false))
	e.create(w)
	e.settled(w)
	var live storagev1.StorageClass
	var csi storagev1.CSIDriver
	read := func() {
		t.Helper()
		require.True(t, e.get(&live, "", e.cluster))
		require.True(t, e.get(&csi, "", e.cluster+".example"))
	}
	read()
	was, driverWas := live.UID, csi.UID
	live.Annotations["storageclass.kubernetes.io/is-default-class"] = "false"
	live.Annotations["theirs"] = "x"
	require.NoError(t, e.Update(t.Context(), &live))
	e.quiet(a)

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(
			fmt.Sprintf(class, true, e.cluster, 1), fmt.Sprintf(driver, e.cluster, true, true))
	})
	e.settled(w)
	read()
	assert.True(t, ptr.Deref(live.AllowVolumeExpansion, false))
	assert.True(t, ptr.Deref(csi.Spec.RequiresRepublish, false))
	assert.Equal(t, was, live.UID, "what can be changed is changed in place")
	assert.Equal(t, driverWas, csi.UID)
	assert.Equal(t, "false", live.Annotations["storageclass.kubernetes.io/is-default-class"], "the cluster chooses")

	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(
			fmt.Sprintf(class, true, e.cluster, 2), fmt.Sprintf(driver, e.cluster, false, true))
	})
	e.settled(w)
	read()
	assert.NotEqual(t, was, live.UID)
	assert.NotEqual(t, driverWas, csi.UID)
	assert.Equal(t, map[string]string{"p": "2"}, live.Parameters)
	assert.False(t, ptr.Deref(csi.Spec.AttachRequired, true))
	assert.Equal(t, "false", live.Annotations["storageclass.kubernetes.io/is-default-class"])
	assert.Equal(t, "x", live.Annotations["theirs"], "what others added moves along")
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

func TestInjectedBundleOfAWebhookStays(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allow("admissionregistration.k8s.io", "*")
	a := e.start()
	hook := fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
		metadata: {name: %[1]s}, webhooks: [{name: a.%[1]s.example, sideEffects: None, admissionReviewVersions: [v1],
		clientConfig: {url: "https://example.com/a"},
		rules: [{apiGroups: [%[1]s.example], apiVersions: [v1], operations: [CREATE], resources: [none]}]}]}`, e.cluster)
	w := e.work("w", hook)
	e.create(w)
	e.settled(w)
	var live admissionregistrationv1.MutatingWebhookConfiguration
	require.True(t, e.get(&live, "", e.cluster))
	live.Webhooks[0].ClientConfig.CABundle = plane.Admin().CAData
	require.NoError(t, e.Update(t.Context(), &live))
	n, _ := e.quiet(a)
	live.Labels = map[string]string{"touched": "x"}
	require.NoError(t, e.Update(t.Context(), &live))
	e.quiet(a)
	assert.NotEmpty(t, a.spoke.since(n))
	require.True(t, e.get(&live, "", e.cluster))
	assert.Equal(t, plane.Admin().CAData, live.Webhooks[0].ClientConfig.CABundle)
	assert.Equal(t, "x", live.Labels["touched"])
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

const clusterWidgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s.example}
spec:
  group: %[1]s.example
  scope: Cluster
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestClusterScopedObjectWithANamespace has a manifest of a cluster-scoped kind that names a namespace, under each
// strategy.
// Shows: work/cluster-scoped-namespace
func TestClusterScopedObjectWithANamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allow(e.cluster+".example", "gadgets")
	e.start()
	gadget := "{apiVersion: %[1]s.example/v1, kind: Gadget, metadata: {name: %[2]s, namespace: %[1]s}, spec: {a: 1}}"
	names := []string{"update", "createonly", "apply"}
	list := []any{fmt.Sprintf(clusterWidgets, e.cluster)}
	for _, name := range names {
		list = append(list, fmt.Sprintf(gadget, e.cluster, name))
	}
	w := e.work("w", list...)
	for name, s := range map[string]workv1.UpdateStrategy{
		"createonly": {Type: workv1.UpdateStrategyTypeCreateOnly}, "apply": serverSide("", false),
	} {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: e.cluster + ".example", Resource: "gadgets", Name: name},
			UpdateStrategy:     &s,
		})
	}
	e.create(w)
	e.settled(w)
	for _, name := range names {
		e.live("{apiVersion: %s.example/v1, kind: Gadget, metadata: {name: %s}}", e.cluster, name)
	}
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

// Shows: work/custom-object-merged
func TestCustomObjectKeepsWhatOthersAdd(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	e.start()
	widget := "{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s, annotations: {a: \"%[2]d\"}}}"
	w := e.work("w", fmt.Sprintf(widgets, e.cluster), fmt.Sprintf(widget, e.cluster, 1))
	e.create(w)
	e.settled(w)
	live := e.live(widget, e.cluster, 0)
	live.SetAnnotations(map[string]string{"a": "1", "theirs": "x"})
	live.SetFinalizers([]string{"example.com/theirs"})
	require.NoError(t, e.Update(t.Context(), live))
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(fmt.Sprintf(widgets, e.cluster), fmt.Sprintf(widget, e.cluster, 2))
	})
	e.settled(w)
	live = e.live(widget, e.cluster, 0)
	assert.Equal(t, map[string]string{"a": "2", "theirs": "x"}, live.GetAnnotations())
	assert.Equal(t, []string{"example.com/theirs"}, live.GetFinalizers())
	require.NoError(t, e.Delete(t.Context(), w))
	e.is(w, workv1.WorkDeleting, metav1.ConditionTrue)
	e.eventually("the finalizer is taken", func() bool {
		live := e.unstructuredOf(widget, e.cluster, 0)
		if client.IgnoreNotFound(e.Get(t.Context(), client.ObjectKeyFromObject(live), live)) != nil {
			return false
		}
		live.SetFinalizers(nil)
		return e.Update(t.Context(), live) == nil
	})
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

// Shows: work/workload
func TestWorkloadWithItsRights(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	list := func(account string) []any {
		return []any{
			fmt.Sprintf(deployment, e.cluster),
			fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: %s}}", account, e.cluster),
			fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: %s},
				rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`, e.cluster),
			fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: %s},
				roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io},
				subjects: [{kind: ServiceAccount, name: %s}]}`, e.cluster, account),
			fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "%s-work"},
				rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`, e.cluster),
		}
	}
	w := e.work("w", list("one")...)
	e.create(w)
	e.settled(w)
	require.True(t, e.get(&corev1.ServiceAccount{}, e.cluster, "one"))
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(list("two")...) })
	e.settled(w)
	require.True(t, e.get(&corev1.ServiceAccount{}, e.cluster, "two"))
	e.eventually("the account that is not wanted any more goes", func() bool {
		return !e.get(&corev1.ServiceAccount{}, e.cluster, "one")
	})
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
}

// Shows: work/refused-update
func TestRefusedRoleRefHasItsGenerations(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	binding := func(role string) []workv1.Manifest {
		return e.manifests(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
			metadata: {name: b, namespace: %s}, roleRef: {kind: Role, name: %s, apiGroup: rbac.authorization.k8s.io}}`,
			e.cluster, role))
	}
	w := e.work("w")
	w.Spec.Workload.Manifests = binding("one")
	e.create(w)
	e.settled(w)
	for _, role := range []string{"two", "three"} {
		e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = binding(role) })
		e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
		e.is(w, workv1.WorkAvailable, metav1.ConditionTrue)
		failed := manifestCondition(w, 0, workv1.ManifestApplied)
		assert.Equal(t, w.Generation, failed.ObservedGeneration)
		assert.Contains(t, failed.Message, roleRefRefused)
	}
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = binding("one") })
	e.settled(w)
}

// TestOrphanOfAMonitoringKind makes an object of a kind under the policy Orphan, with the garbage collector running:
// it has no owner at all and stays.
// Shows: work/orphan-owner
func TestOrphanOfAMonitoringKind(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.allowWidgets()
	a := e.start()
	widget := "{apiVersion: %[1]s.example/v1, kind: Widget, metadata: {name: x, namespace: %[1]s}}"
	w := e.work("w", fmt.Sprintf(widgets, e.cluster), fmt.Sprintf(widget, e.cluster))
	w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	e.create(w)
	e.settled(w)
	e.quiet(a)
	assert.Empty(t, e.live(widget, e.cluster).GetOwnerReferences())
	require.NoError(t, e.Delete(t.Context(), e.live(widgets, e.cluster)))
}
