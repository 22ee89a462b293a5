package work_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
)

// special is a kind that the reference treats by itself although its definition is installed by others.
type special struct {
	group, version, plural, kind string
	scope                        string
	// content is the content of a manifest, changed that of a later one, edited what a user makes of the former.
	content, changed, edited string
}

// specials are all such kinds (docs/reference/work.md, "Update").
func specials() []special {
	const monitoring, snapshot = "monitoring.coreos.com", "snapshot.storage.k8s.io"
	const namespaced = "Namespaced"
	spec := [3]string{
		`{spec: {a: one, list: [{x: one}]}}`, `{spec: {a: two}}`, `{spec: {a: theirs, list: [{x: two}], more: yes please}}`,
	}
	class := [3]string{
		`{driver: example.com/d, deletionPolicy: Delete, parameters: {p: "1"}}`,
		`{driver: example.com/d, deletionPolicy: Retain}`,
		`{driver: example.com/other, deletionPolicy: Retain, parameters: {p: "2", q: "3"}}`,
	}
	return []special{
		{monitoring, "v1", "servicemonitors", "ServiceMonitor", namespaced, spec[0], spec[1], spec[2]},
		{monitoring, "v1", "prometheusrules", "PrometheusRule", namespaced, spec[0], spec[1], spec[2]},
		{monitoring, "v1", "prometheuses", "Prometheus", namespaced, spec[0], spec[1], spec[2]},
		{monitoring, "v1", "alertmanagers", "Alertmanager", namespaced, spec[0], spec[1], spec[2]},
		{snapshot, "v1", "volumesnapshotclasses", "VolumeSnapshotClass", "Cluster", class[0], class[1], class[2]},
		{"migration.k8s.io", "v1alpha1", "storageversionmigrations", "StorageVersionMigration", "Cluster", spec[0], spec[1], spec[2]},
	}
}

// define installs the definition of the kind on a control plane.
func (s *special) define(t *testing.T, p *sandbox.ControlPlane) {
	t.Helper()
	require.NoError(t, p.Apply(t.Context(), fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[2]s
  scope: %[5]s
  names: {plural: %[1]s, kind: %[3]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, s.plural, s.group, s.kind, s.version, s.scope)))
}

// object is an object of the kind with a content.
func (s *special) object(e *env, content string) *unstructured.Unstructured {
	e.Helper()
	o := e.unstructuredOf("%s", content)
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: s.group, Version: s.version, Kind: s.kind})
	o.SetName(e.cluster)
	if s.scope == "Namespaced" {
		o.SetNamespace(e.cluster)
	}
	return o
}

// said says what an object says besides its identity.
func said(o *unstructured.Unstructured) map[string]any {
	content := o.DeepCopy().Object
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(content, key)
	}
	return content
}

// TestKindsThatTheReferenceTreatsByThemselves makes, repairs, changes, orphans and deletes objects of the kinds for
// which the reference has code of its own although others install their definitions. Ours treats them like any custom
// resource; what may be seen of that is what OCM says.
// Shows: work/orphan-owner
func TestKindsThatTheReferenceTreatsByThemselves(t *testing.T) {
	t.Parallel()
	for _, s := range specials() {
		s.define(t, plane.ControlPlane)
	}
	for _, s := range specials() {
		t.Run(s.kind, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			if s.kind != "ServiceMonitor" { // which the agent may apply as it is installed
				e.allow(s.group, s.plural)
			}
			a := e.start()
			wanted := s.object(e, s.content)
			wanted.SetLabels(map[string]string{"ours": "1"})
			w := e.work("w", wanted)
			e.create(w)
			e.settled(w)
			live := s.object(e, "{}")
			is := func(content string) {
				t.Helper()
				want := said(s.object(e, content))
				e.eventually("it says "+content, func() bool {
					return e.Get(t.Context(), client.ObjectKeyFromObject(live), live) == nil &&
						assert.ObjectsAreEqual(want, said(live))
				})
			}
			is(s.content)
			assert.Len(t, live.GetOwnerReferences(), 1)
			e.quiet(a)
			for key, value := range said(s.object(e, s.edited)) {
				live.Object[key] = value
			}
			live.SetLabels(map[string]string{"theirs": "2"})
			require.NoError(t, e.Update(t.Context(), live))
			is(s.content)
			assert.Equal(t, map[string]string{"ours": "1", "theirs": "2"}, live.GetLabels())

			e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(s.object(e, s.changed)) })
			is(s.changed)
			e.settled(w)
			e.edit(w, func(w *workv1.ManifestWork) {
				w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
			})
			e.eventually("an orphan has no owner", func() bool {
				return e.Get(t.Context(), client.ObjectKeyFromObject(live), live) == nil && len(live.GetOwnerReferences()) == 0
			})
			require.NoError(t, e.Delete(t.Context(), live))
			e.eventually("an orphan is made again without an owner", func() bool {
				return e.Get(t.Context(), client.ObjectKeyFromObject(live), live) == nil && len(live.GetOwnerReferences()) == 0
			})
			e.edit(w, func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
			e.settled(w)
			require.NoError(t, e.Delete(t.Context(), w))
			e.gone("w")
			assert.Error(t, e.Get(t.Context(), client.ObjectKeyFromObject(live), live))
		})
	}
}

// TestOnlyTheMetadataOfSomeKindsIsKept changes manifests of a Namespace, a Pod and a ServiceAccount: their labels
// follow, and nothing else, neither from the manifest nor against what the cluster or a user put there.
// Shows: work/strategies
func TestOnlyTheMetadataOfSomeKindsIsKept(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	list := func(n int) []workv1.Manifest {
		return e.manifests(
			fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s-more, labels: {rev: \"%d\"}}}", e.cluster, n),
			fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: %s, labels: {rev: "%d"}},
				imagePullSecrets: [{name: pull-%[2]d}]}`, e.cluster, n),
			fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: %s, labels: {rev: "%d"}},
				spec: {containers: [{name: c, image: "i:%[2]d"}]}}`, e.cluster, n))
	}
	w := e.work("w")
	w.Spec.Workload.Manifests = list(1)
	e.create(w)
	e.settled(w)
	var account corev1.ServiceAccount
	require.True(t, e.get(&account, e.cluster, "sa"))
	account.Secrets = []corev1.ObjectReference{{Name: "theirs"}}
	account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: "theirs"})
	require.NoError(t, e.Update(t.Context(), &account))
	e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = list(2) })
	e.settled(w)
	e.quiet(a)
	var pod corev1.Pod
	var namespace corev1.Namespace
	require.True(t, e.get(&account, e.cluster, "sa"))
	require.True(t, e.get(&pod, e.cluster, "pod"))
	require.True(t, e.get(&namespace, "", e.cluster+"-more"))
	for _, o := range []client.Object{&account, &pod, &namespace} {
		assert.Equal(t, "2", o.GetLabels()["rev"], "%T", o)
	}
	assert.Equal(t, []corev1.ObjectReference{{Name: "theirs"}}, account.Secrets)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "pull-1"}, {Name: "theirs"}}, account.ImagePullSecrets)
	assert.Equal(t, "i:1", pod.Spec.Containers[0].Image, "a Pod that runs is not rolled out")
	e.undisturbed(a, 3)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}

// TestKindsAreAppliedInTheirOrder has one manifest of each rank, listed the wrong way round with a broken one first,
// and looks at the order in which they were made.
// Shows: work/rank
func TestKindsAreAppliedInTheirOrder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	list := []any{
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "` + e.cluster + `"}}`,
		fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: o-ingress, namespace: %s},
			spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`, e.cluster),
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
			metadata: {name: o-hook-%s}, webhooks: []}`, e.cluster),
		strings.Replace(e.deployment("o-deployment", 0), "replicas: 0,", "replicas: 0, paused: true,", 1),
		fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: o-service, namespace: %s}, spec: {ports: [{port: 80}]}}", e.cluster),
		fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: o-secret, namespace: %s}}", e.cluster),
		fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: o-account, namespace: %s}}", e.cluster),
		fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: o-role, namespace: %s}}", e.cluster),
		fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: o-space-%s}}", e.cluster),
	}
	w := e.work("w", list...)
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	e.quiet(a)
	var made []string
	for _, line := range a.spoke.since(0) {
		path, post := strings.CutPrefix(line, "POST ")
		path, _, _ = strings.Cut(path, "?")
		if post && !strings.HasSuffix(path, "/appliedmanifestworks") {
			made = append(made, path[strings.LastIndex(path, "/")+1:])
		}
	}
	assert.Equal(t, []string{
		"namespaces", "roles", "serviceaccounts", "secrets", "services", "deployments", "mutatingwebhookconfigurations", "ingresses",
	}, made)
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		assert.EqualValues(t, i, m.ResourceMeta.Ordinal, "the status keeps the order of the spec")
		want := metav1.ConditionTrue
		if i == 0 {
			want = metav1.ConditionFalse
		}
		assert.Equal(t, want, manifestCondition(w, i, workv1.ManifestApplied).Status)
	}
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}
