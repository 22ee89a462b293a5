package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// kind is the kind that owns the objects of a work on the spoke.
const kind = "AppliedManifestWork"

// OwnerReference is the reference by which an AppliedManifestWork owns an object; several may own the same one.
func OwnerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: workv1.GroupVersion.String(), Kind: kind, Name: name, UID: uid}
}

// sameOwner reports whether two references mean the same owner: by name, kind and API group, not by UID or version.
func sameOwner(a, b metav1.OwnerReference) bool {
	return a.Name == b.Name && a.Kind == b.Kind && groupOf(a.APIVersion) == groupOf(b.APIVersion)
}

// groupOf is the group of an apiVersion; for one that cannot be parsed it is the whole text, so that it matches itself.
func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiVersion
	}
	return gv.Group
}

// WithOwner returns the references with the owner, exactly as given, when owned, and without it otherwise.
func WithOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference, owned bool) []metav1.OwnerReference {
	var merged []metav1.OwnerReference
	placed := false
	for _, ref := range refs {
		switch {
		case !sameOwner(ref, owner):
			merged = append(merged, ref)
		case owned && !placed:
			merged = append(merged, owner)
			placed = true
		}
	}
	if owned && !placed {
		merged = append(merged, owner)
	}
	return merged
}

// Owners reports whether the AppliedManifestWork with the UID owns the object, and whether another one does, too.
func Owners(object metav1.Object, uid types.UID) (ours, others bool) {
	for _, ref := range object.GetOwnerReferences() {
		switch {
		case ref.UID == uid:
			ours = true
		case ref.Kind == kind && ref.APIVersion == workv1.GroupVersion.String():
			others = true
		}
	}
	return ours, others
}
