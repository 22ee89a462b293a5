package work_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTakeOverFromAnotherAgent starts with a work, its AppliedManifestWork and its objects as an OCM agent leaves them:
// nothing is made again or written again, except that what the other agent lost is put right.
// Shows: work/labels-and-finalizer
func TestTakeOverFromAnotherAgent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	service := fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s},
		spec: {selector: {a: b}, ports: [{port: 80}]}}`, e.cluster)
	deploy := fmt.Sprintf(deployment, e.cluster)
	applyThis := e.configMap("ssa", map[string]string{"kept": "1", "tuned": "1"})
	w := e.work("w", e.configMap("plain", map[string]string{"k": "v"}), service, deploy, applyThis)
	w.Finalizers = []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{e.strategy("ssa", ignoring(workv1.IgnoreField{
		Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".data.tuned"},
	}))}
	e.create(w)

	applied := &workv1.AppliedManifestWork{
		// Without its finalizer, as an uninstalled operator leaves it.
		ObjectMeta: metav1.ObjectMeta{Name: e.settings.hubHash + "-w"},
		Spec: workv1.AppliedManifestWorkSpec{
			HubHash: e.settings.hubHash, AgentID: e.settings.agentID, ManifestWorkName: "w",
		},
	}
	e.create(applied)
	objects := []*unstructured.Unstructured{
		e.upstream(applied, e.unstructuredOf(
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: %s}, data: {k: v}}", e.cluster)),
		e.upstream(applied, e.withSpecHash(service)), e.upstream(applied, e.unstructuredOf("%s", deploy)),
		e.upstreamApplied(applied, applyThis),
	}
	e.put("ssa", "tuned", "live")
	e.upstreamStatus(w, applied, objects)
	before := map[string]string{}
	for _, o := range objects {
		require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		before[o.GetKind()+"/"+o.GetName()] = o.GetResourceVersion()
	}

	a := e.start()
	e.eventually("the finalizer is back", func() bool { return len(e.applied().Finalizers) == 1 })
	e.settled(w)
	e.quiet(a)
	for _, o := range objects {
		uid := o.GetUID()
		require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		assert.Equal(t, uid, o.GetUID(), o.GetName())
		assert.Len(t, o.GetOwnerReferences(), 1)
		if o.GetName() != "ssa" && o.GetKind() != "Deployment" { // The deployment controller writes on its own.
			assert.Equal(t, before[o.GetKind()+"/"+o.GetName()], o.GetResourceVersion(), o.GetName())
		}
		assert.LessOrEqual(t, o.GetGeneration(), int64(1))
	}
	e.data("ssa", map[string]string{"kept": "1", "tuned": "live"})
	sent := writes(a.spoke.since(0))
	assert.LessOrEqual(t, len(sent), 2, "the finalizer, and the mark of the applied object: %q", sent)

	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work is gone", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, "w") })
	for _, o := range objects {
		assert.Error(t, e.Get(t.Context(), client.ObjectKeyFromObject(o), o), "%s is gone", o.GetName())
	}
}

// withSpecHash is a Service with the digest that library-go sets.
func (e *env) withSpecHash(manifest string) *unstructured.Unstructured {
	e.Helper()
	o := e.unstructuredOf("%s", manifest)
	var service corev1.Service
	require.NoError(e, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service))
	raw, err := json.Marshal(service.Spec)
	require.NoError(e, err)
	sum := sha256.Sum256(raw)
	o.SetAnnotations(map[string]string{"operator.openshift.io/spec-hash": hex.EncodeToString(sum[:])})
	return o
}

// upstreamApplied applies a ConfigMap as the agent of OCM does, with a mark whose algorithm is its own.
func (e *env) upstreamApplied(applied *workv1.AppliedManifestWork, cm *corev1.ConfigMap) *unstructured.Unstructured {
	e.Helper()
	raw, err := json.Marshal(cm)
	require.NoError(e, err)
	o := &unstructured.Unstructured{}
	require.NoError(e, o.UnmarshalJSON(raw))
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	o.SetAnnotations(map[string]string{annotationHash: "0123456789abcdef0123456789abcdef"})
	require.NoError(e, e.Apply(e.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("work-agent")))
	live := e.live("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}", cm.Name, cm.Namespace)
	base := live.DeepCopy()
	live.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork", Name: applied.Name, UID: applied.UID,
	}})
	require.NoError(e, e.Patch(e.Context(), live, client.MergeFrom(base), client.FieldOwner("work-agent")))
	return live
}

// upstreamStatus writes what the agent of OCM says when all is well.
func (e *env) upstreamStatus(w *workv1.ManifestWork, applied *workv1.AppliedManifestWork, objects []*unstructured.Unstructured) {
	e.Helper()
	now := metav1.Now()
	condition := func(kind, reason, message string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: generation, LastTransitionTime: now,
		}
	}
	plural := map[string]string{"ConfigMap": "configmaps", "Service": "services", "Deployment": "deployments"}
	for i, o := range objects {
		gvk := o.GroupVersionKind()
		id := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural[gvk.Kind]}
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Ordinal: int32(i), Group: id.Group, Version: id.Version, Kind: gvk.Kind, Resource: id.Resource,
				Namespace: o.GetNamespace(), Name: o.GetName(),
			},
			Conditions: []metav1.Condition{
				condition("Applied", "AppliedManifestComplete", "Apply manifest complete", w.Generation),
				condition("Available", "ResourceAvailable", "Resource is available", 0),
				condition("StatusFeedbackSynced", "NoStatusFeedbackSynced", "", 0),
			},
		})
		applied.Status.AppliedResources = append(applied.Status.AppliedResources, workv1.AppliedManifestResourceMeta{
			Version: id.Version, UID: string(o.GetUID()), ResourceIdentifier: workv1.ResourceIdentifier{
				Group: id.Group, Resource: id.Resource, Namespace: o.GetNamespace(), Name: o.GetName(),
			},
		})
	}
	w.Status.Conditions = []metav1.Condition{
		condition("Applied", "AppliedManifestWorkComplete", "Apply manifest work complete", w.Generation),
		condition("Available", "ResourcesAvailable", "All resources are available", w.Generation),
	}
	slices.SortFunc(applied.Status.AppliedResources, func(a, b workv1.AppliedManifestResourceMeta) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
	})
	require.NoError(e, e.Status().Update(e.Context(), w))
	require.NoError(e, e.Status().Update(e.Context(), applied))
}
