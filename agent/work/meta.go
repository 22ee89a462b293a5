package work

import (
	"hash/fnv"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// kindApplied is the kind that owns the objects of a work on the spoke.
const kindApplied = "AppliedManifestWork"

// ownerReference is how an AppliedManifestWork owns an object; several may own the same one.
func ownerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: workv1.GroupVersion.String(), Kind: kindApplied, Name: name, UID: uid,
	}
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

// withOwner returns the references with the owner as wished: in them exactly as given when owned, absent otherwise.
func withOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference, owned bool) []metav1.OwnerReference {
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

// fingerprint digests the metadata that a person or controller may change without the generation moving: labels,
// annotations, owners, finalizers and the deletion mark.
func fingerprint(object metav1.Object) uint64 {
	sum := fnv.New64a()
	put := func(parts ...string) {
		for _, part := range parts {
			_, _ = sum.Write([]byte(part))
			_, _ = sum.Write([]byte{0})
		}
		_, _ = sum.Write([]byte{1})
	}
	for _, labels := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			put(key, labels[key])
		}
		put()
	}
	for _, ref := range object.GetOwnerReferences() {
		put(ref.APIVersion, ref.Kind, ref.Name, string(ref.UID))
	}
	put()
	put(object.GetFinalizers()...)
	if object.GetDeletionTimestamp() != nil {
		put("deleting")
	}
	return sum.Sum64()
}

// owners reports whether the AppliedManifestWork with the given UID owns the object, and whether another one does too.
func owners(object metav1.Object, uid types.UID) (ours, others bool) {
	for _, ref := range object.GetOwnerReferences() {
		switch {
		case ref.UID == uid:
			ours = true
		case ref.Kind == kindApplied && ref.APIVersion == workv1.GroupVersion.String():
			others = true
		}
	}
	return ours, others
}
