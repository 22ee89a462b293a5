package hubprocess

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxKept is the number of bytes that are kept of a list, the labels, or the annotations of an object that tenants
	// and agents write. Ours need a hundredth of it.
	maxKept = 16 << 10
	// perEntry is the number of bytes that an entry takes without its text, about.
	perEntry = 64
	// tooMany is in the last entry of a list that was cut. API servers refuse each such entry, so that no list that was
	// cut can be written back, and none is equal to what a reconciler wants.
	tooMany = "there are too many to keep"
)

// Bounded returns a transformation that bounds labels, owners and finalizers before the next transformation: whoever
// may write an object can fill it up to the 1.5 MB of the API server. Labels beyond the bound are absent from both
// sides of every comparison, so a patch never removes them; those of our APIs are kept before those of others.
func Bounded(next func(any) (any, error)) func(any) (any, error) {
	return func(in any) (any, error) {
		if o, err := meta.Accessor(in); err == nil {
			boundMeta(o)
		}
		return next(in)
	}
}

// Annotated returns a transformation that bounds annotations, too, as Bounded does labels. It is for kinds of which the
// hub manager reads a few short annotations, and whose annotations no policy bounds.
func Annotated(next func(any) (any, error)) func(any) (any, error) {
	return Bounded(func(in any) (any, error) {
		if o, err := meta.Accessor(in); err == nil {
			if annotations := o.GetAnnotations(); len(annotations) > 0 {
				o.SetAnnotations(first(annotations))
			}
		}
		return next(in)
	})
}

// boundMeta bounds the metadata of an object.
func boundMeta(o metav1.Object) {
	o.SetFinalizers(cut(o.GetFinalizers(), func(f *string) int { return len(*f) + perEntry }, tooMany))
	o.SetOwnerReferences(cut(o.GetOwnerReferences(), func(owner *metav1.OwnerReference) int {
		return perEntry + len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}, metav1.OwnerReference{Name: tooMany}))
	if labels := o.GetLabels(); len(labels) > 0 {
		o.SetLabels(first(labels))
	}
}

// first returns the labels or annotations for which there is room.
func first(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += perEntry + len(key) + len(value)
	}
	if size <= maxKept {
		return all
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if isOurKey(a) != isOurKey(b) {
			return map[bool]int{true: -1, false: 1}[isOurKey(a)]
		}
		return cmp.Compare(a, b)
	})
	kept := map[string]string{}
	for _, key := range keys[:fitting(keys, maxKept, func(key *string) int {
		return perEntry + len(*key) + len(all[*key])
	})] {
		kept[key] = all[key]
	}
	return kept
}

// isOurKey reports whether the key of a label or annotation is one of our APIs, or of those of OCM.
func isOurKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, "open-cluster-management.io") || strings.HasSuffix(domain, "spokelet.io")
}

// cut returns a list as it is or, when it is too large, its first entries and last.
func cut[E any](list []E, size func(*E) int, last E) []E {
	if n := fitting(list, maxKept, size); n < len(list) {
		return append(slices.Clone(list[:n]), last)
	}
	return list
}

// fitting returns the number of first entries of a list that together have at most so many bytes.
func fitting[E any](list []E, most int, size func(*E) int) int {
	for n := range list {
		if most -= size(&list[n]); most < 0 {
			return n
		}
	}
	return len(list)
}
