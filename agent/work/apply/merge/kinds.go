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
	// annotationSpecHash on Services and CSIDrivers digests the spec of their manifest, so that an agent which looks at
	// nothing else finds no difference (work contract, sections 5.4 and 9.2). Ours compares the objects.
	annotationSpecHash = "operator.openshift.io/spec-hash"
	// annotationDefaultClass marks the default StorageClass; which one that is, is for the cluster to say.
	annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"
	// labelVolumeProfile on a CSIDriver is a choice of the cluster, too.
	labelVolumeProfile = "security.openshift.io/csi-ephemeral-volume-profile"
)

// SetSpecHash sets the digest of the spec on the kinds that have one. A spec that cannot be read has none: the API server
// will say what is wrong with it.
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

// yield returns what is wanted of a live object: the manifest, except for what is for the cluster to choose and what
// somebody set through the scale subresource while the manifest leaves it open, such as the replicas that a
// HorizontalPodAutoscaler wants.
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

// addMissing adds to a value what it does not say.
func addMissing(value, more map[string]any) {
	for key, extra := range more {
		have, said := value[key]
		inner, isMap := have.(map[string]any)
		deeper, goes := extra.(map[string]any)
		switch {
		case !said:
			value[key] = runtime.DeepCopyJSONValue(extra)
		case isMap && goes:
			addMissing(inner, deeper)
		}
	}
}

// mergeStorageClass replaces all fields; those that nobody can change ask for a new object.
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

// Recreatable reports whether an object of the kind is made anew when the API server calls a change impossible.
func Recreatable(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"}:
		return true
	}
	return false
}

// ForRecreate readies a desired object for taking the place of a live one, with what others added to its metadata.
func ForRecreate(live, desired *unstructured.Unstructured, owner metav1.OwnerReference, owned bool,
) *unstructured.Unstructured {
	wanted := yield(live, desired)
	object := ForCreate(wanted, owner, owned)
	object.SetLabels(withLabels(live.GetLabels(), wanted.GetLabels()))
	object.SetAnnotations(withLabels(live.GetAnnotations(), wanted.GetAnnotations()))
	object.SetOwnerReferences(inventory.WithOwner(live.GetOwnerReferences(), owner, owned))
	return object
}
