package install

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/internal/names"
)

// copied returns the annotations of an add-on with those of its cluster that have the prefix of add-ons, and whether
// they differ from have. A record on the add-on names what was copied; only that is changed and removed later. What the
// add-on has without a record belongs to whoever set it. An add-on without a record was installed by another manager,
// or by an earlier version: what equals the annotation of the cluster counts as copied.
func copied(have, cluster map[string]string) (map[string]string, bool) {
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
		if !isCopied(key) {
			continue
		}
		there, exists := have[key]
		if exists && !ours.Has(key) && (recorded || there != value) {
			continue
		}
		want[key] = value
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

// isCopied reports whether an annotation of a cluster is copied to its add-ons. One of the prefix is not: it stands for
// a field of the add-on in another version of the API.
func isCopied(key string) bool {
	return strings.HasPrefix(key, names.AnnotationAddonPrefix) && key != names.AnnotationInstallNamespace
}

// copiedOf returns the annotations of a cluster that are copied, or of an add-on that may have been.
func copiedOf(annotations map[string]string) map[string]string {
	var found map[string]string
	for key, value := range annotations {
		if isCopied(key) || key == names.AnnotationCopied {
			if found == nil {
				found = map[string]string{}
			}
			found[key] = value
		}
	}
	return found
}
