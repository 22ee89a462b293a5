package hubprocess

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
)

const (
	// maxKept is the number of bytes that are kept of a list, the labels, or the annotations of an object that tenants
	// and agents write. Ours need a hundredth of it.
	maxKept = 16 << 10
	// maxOwn is the same for each label and annotation that the hub manager writes, which have a few bytes.
	maxOwn = 1 << 10
	// maxHashes is the same for the hashes of the configurations of a work: those of 256 configurations with the longest
	// names, of a kind with the longest name, have 164 KB.
	maxHashes = 192 << 10
	// perEntry is the number of bytes that an entry takes without its text, about.
	perEntry = 64
	// tooMany is in the last entry of a list that was cut. API servers refuse each such entry, so that no list that was
	// cut can be written back, and none is equal to what a reconciler wants.
	tooMany = "there are too many to keep"
)

// Bounded returns a transformation that bounds labels, owners and finalizers before the next transformation: a user who
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
				o.SetAnnotations(first(o, annotations))
			}
		}
		return next(in)
	})
}

// Labels returns those labels of an object that a cache keeps, also of one that is read from the API server.
func Labels(o metav1.Object) map[string]string { return first(o, o.GetLabels()) }

// boundMeta bounds the metadata of an object.
func boundMeta(o metav1.Object) {
	o.SetFinalizers(cut(o.GetFinalizers(), func(f *string) int { return len(*f) + perEntry }, tooMany))
	o.SetOwnerReferences(cut(o.GetOwnerReferences(), func(owner *metav1.OwnerReference) int {
		return perEntry + len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}, metav1.OwnerReference{Name: tooMany}))
	if labels := o.GetLabels(); len(labels) > 0 {
		o.SetLabels(first(o, labels))
	}
}

// first returns the labels or annotations of an object for which there is room. Those that reconcilers write onto what
// tenants write as well have room of their own, so that nobody makes a reconciler miss what it wrote and write it
// again and again.
func first(o metav1.Object, all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += perEntry + len(key) + len(value)
	}
	if size <= maxKept {
		return all
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	kept, used := map[string]string{}, 0
	for _, key := range keys {
		size := perEntry + len(key) + len(all[key])
		if own := roomFor(o, key); own > 0 {
			if size <= own {
				kept[key] = all[key]
			}
		} else if used+size <= maxKept {
			kept[key], used = all[key], used+size
		}
	}
	return kept
}

// rank is lower for keys of our APIs.
func rank(key string) int {
	if isOurKey(key) {
		return 0
	}
	return 1
}

// roomFor returns how many bytes are kept of a label or annotation that the hub manager writes or reads on objects that
// tenants write, too; 0 for any other one.
func roomFor(o metav1.Object, key string) int {
	switch key {
	case names.AnnotationConfigSpecHash:
		if _, isWork := o.(*workv1.ManifestWork); isWork {
			return maxHashes
		}
	case names.LabelPlacement, names.LabelDecisionGroupIndex, names.LabelDecisionGroupName, names.AnnotationStickyPages,
		names.AnnotationDecisionGroup, names.AnnotationDecisionGroupSize, names.AnnotationSetBindings,
		names.LabelAddonName, names.LabelAddonNamespace, names.LabelAddonTemplate, names.LabelClusterName,
		names.AnnotationAddonUID, names.AnnotationRenderedFrom, names.AnnotationConfigOrder,
		tokens.LabelName, tokens.LabelInfrastructure, clusterv1beta1.PlacementDisableAnnotation:
		return maxOwn
	}
	return 0
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
