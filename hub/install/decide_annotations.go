package install

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/internal/names"
)

// copied returns the annotations of an add-on with those of its cluster that are copied, and whether they differ from
// have. A record on the add-on names what was copied; only that is changed and removed later. What the add-on has
// without a record belongs to whoever set it. An add-on without a record was installed by another manager, or by an
// earlier version: what equals the annotation of the cluster counts as copied. What others copied and we do not stays
// as it is, with its record, as long as the cluster has it: the record tells that the cluster's own agent may have
// chosen it.
func copied(have, cluster map[string]string, asOCM bool) (map[string]string, bool) {
	record, recorded := have[names.AnnotationCopied]
	ours := sets.New[string]()
	for _, name := range strings.Split(record, ",") {
		if name != "" {
			ours.Insert(names.AnnotationAddonPrefix + name)
		}
	}
	want := map[string]string{}
	maps.Copy(want, have)
	var now []string
	for key, value := range cluster {
		there, exists := have[key]
		switch follows := isCopied(key, asOCM); {
		case !isOfAddOns(key), !follows && !exists:
			continue
		case exists && !ours.Has(key) && (recorded || there != value):
			continue
		case follows:
			want[key] = value
		}
		now = append(now, strings.TrimPrefix(key, names.AnnotationAddonPrefix))
	}
	for key := range ours {
		if _, exists := cluster[key]; !exists {
			delete(want, key)
		}
	}
	slices.Sort(now)
	if len(now) > 0 || recorded {
		want[names.AnnotationCopied] = strings.Join(now, ",")
	}
	return want, !maps.Equal(have, want)
}

// isCopied reports whether an annotation of a cluster is copied to its add-ons. Agents write their cluster, so these
// are only the values of an add-on, which change nothing elsewhere. The hub of OCM copies all of the prefix, the
// hosting cluster among them.
func isCopied(key string, asOCM bool) bool {
	return isOfAddOns(key) && (asOCM || key == names.AnnotationValues)
}

// isOfAddOns reports whether an annotation of a cluster is about its add-ons. One of the prefix is not: it stands for a
// field of the add-on in another version of the API.
func isOfAddOns(key string) bool {
	return strings.HasPrefix(key, names.AnnotationAddonPrefix) && key != names.AnnotationInstallNamespace
}

// sameCopied reports whether an add-on with some annotations gets the same from two copies of its cluster. What is not
// copied does not count: agents may write that all the time.
func sameCopied(have, a, b map[string]string, asOCM bool) bool {
	one, _ := copied(have, a, asOCM)
	other, _ := copied(have, b, asOCM)
	return sameAboutAddOns(one, other)
}

// sameAboutAddOns reports whether two sets of annotations of an add-on have the same that may be copied. The record of
// what was copied is left out: nothing is rendered from it.
func sameAboutAddOns(a, b map[string]string) bool {
	about := func(all map[string]string) map[string]string {
		found := copiedOf(all)
		delete(found, names.AnnotationCopied)
		return found
	}
	return maps.Equal(about(a), about(b))
}

// copiedOf returns the annotations of a cluster that may be copied, or of an add-on that may have been.
func copiedOf(annotations map[string]string) map[string]string {
	var found map[string]string
	for key, value := range annotations {
		if isOfAddOns(key) || key == names.AnnotationCopied {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = value
		}
	}
	return found
}
