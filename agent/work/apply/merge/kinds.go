package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/inventory"
)

const (
	// annotationSpecHash on Services and CSIDrivers is the hash of the spec of their manifest: an agent that compares only
	// this annotation then finds no difference (docs/reference/work.md, "Annotations and labels" and "Moving from another
	// agent"). Ours compares the objects.
	annotationSpecHash = "operator.openshift.io/spec-hash"
	// annotationDefaultClass marks the default StorageClass, which the cluster chooses.
	annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"
	// labelVolumeProfile on a CSIDriver is chosen by the cluster, too.
	labelVolumeProfile = "security.openshift.io/csi-ephemeral-volume-profile"
	// annotationRestartedAt on the pods of a workload is how kubectl rollout restart replaces them.
	annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"
)

// SetSpecHash sets the hash of the spec on the kinds that have one. A spec that cannot be read gets none: the API
// server refuses it with the cause.
func SetSpecHash(object *unstructured.Unstructured) {
	var spec any
	var err error
	switch object.GroupVersionKind() {
	case schema.GroupVersionKind{Version: "v1", Kind: "Service"}:
		var service corev1.Service
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &service)
		spec = service.Spec
	case schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"}:
		var driver storagev1.CSIDriver
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &driver)
		spec = driver.Spec
	default:
		return
	}
	if err != nil {
		return
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return
	}
	sum := sha256.Sum256(raw)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationSpecHash] = hex.EncodeToString(sum[:])
	object.SetAnnotations(annotations)
}

// yield returns the manifest with the live values of those fields that are not ours: the cluster chooses them, or the
// manifest leaves them open and they were set through the scale subresource, such as the replicas that a
// HorizontalPodAutoscaler sets, or by a restart.
func yield(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := desired
	copied := func() *unstructured.Unstructured {
		if wanted == desired {
			wanted = desired.DeepCopy()
		}
		return wanted
	}
	switch desired.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}:
		if chosen, ok := live.GetAnnotations()[annotationDefaultClass]; ok {
			next := copied()
			annotations := withLabels(next.GetAnnotations(), map[string]string{annotationDefaultClass: chosen})
			delete(annotations, annotationDefaultClass+"-")
			next.SetAnnotations(annotations)
		}
	case schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"}:
		if chosen, ok := live.GetLabels()[labelVolumeProfile]; ok {
			next := copied()
			next.SetLabels(withLabels(next.GetLabels(), map[string]string{labelVolumeProfile: chosen}))
		}
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		if restart := restartOf(live); restart != nil {
			addMissing(copied().Object, restart)
		}
	}
	entries := live.GetManagedFields()
	for i := range entries {
		if entries[i].Subresource == content.ScaleSubresource && entries[i].APIVersion == live.GetAPIVersion() {
			scaled, _ := ssa.Part(content.Of(live), &entries[i]).(map[string]any)
			addMissing(copied().Object, scaled)
		}
	}
	return wanted
}

// restartOf returns the annotation of a restart, as the part of a workload that has it; nil without one. To remove it
// would replace the pods once more, or stop the rollout that replaces them.
func restartOf(live *unstructured.Unstructured) map[string]any {
	at, restarted, _ := unstructured.NestedString(live.Object, "spec", "template", "metadata", "annotations",
		annotationRestartedAt)
	if !restarted {
		return nil
	}
	annotations := map[string]any{annotationRestartedAt: at}
	return map[string]any{"spec": map[string]any{
		"template": map[string]any{"metadata": map[string]any{"annotations": annotations}},
	}}
}

// addMissing adds the fields that a value lacks, or has as null.
func addMissing(value, more map[string]any) {
	for key, extra := range more {
		have := value[key]
		inner, isMap := have.(map[string]any)
		deeper, goes := extra.(map[string]any)
		switch {
		case have == nil:
			value[key] = runtime.DeepCopyJSONValue(extra)
		case isMap && goes:
			addMissing(inner, deeper)
		}
	}
}

// mergeStorageClass replaces all fields; a change of those that are immutable needs a new object.
func mergeStorageClass(next, desired *unstructured.Unstructured) (Delta, error) {
	wanted := desired.DeepCopy()
	addMissing(wanted.Object, map[string]any{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
	for _, field := range []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"} {
		have, want := next.Object[field], wanted.Object[field]
		if content.SameValue(have, want) || (content.Empty(have) && content.Empty(want)) {
			continue
		}
		return Changed, errRecreate
	}
	return replaceContent(next, wanted)
}

// Recreatable reports whether an object of the kind is recreated when the API server refuses a change as immutable.
func Recreatable(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"}:
		return true
	}
	return false
}

// ForRecreate returns the object that replaces a live one, with the metadata that others added to that.
func ForRecreate(live, desired *unstructured.Unstructured, owner metav1.OwnerReference, owned bool,
) *unstructured.Unstructured {
	wanted := yield(live, desired)
	object := ForCreate(wanted, owner, owned)
	object.SetLabels(withLabels(live.GetLabels(), wanted.GetLabels()))
	object.SetAnnotations(withLabels(live.GetAnnotations(), wanted.GetAnnotations()))
	object.SetOwnerReferences(inventory.WithOwner(live.GetOwnerReferences(), owner, owned))
	return object
}
